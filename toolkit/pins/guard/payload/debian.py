"""What the image itself says to the rules of `compare`: its Python and its Debian package manager."""

import os
import subprocess
import sys


def search_order():
    """The directories in which Python searches modules."""
    return [os.path.realpath(path) for path in sys.path]


def owner(path):
    """The Debian package that a path belongs to."""
    try:
        found = subprocess.check_output(["dpkg-query", "--search", path], stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return "a Debian package"
    return found.decode("utf-8", "replace").partition(": ")[0].partition(":")[0]


def breaks(specifier, version):
    """Whether a version is outside of a PEP 440 specifier, by the library that every pip since 8 carries."""
    try:
        from pip._vendor.packaging.specifiers import SpecifierSet
    except ImportError:
        return False
    return not SpecifierSet(specifier).contains(version, prereleases=True)
