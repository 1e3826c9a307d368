"""What the installation of Debian packages changed in what the base protects.

apt installs Python packages that others require, such as python3-numpy, beside those of the base. A copy that Python
does not import, because the base's own comes first or because Python does not search that directory, changes nothing.
"""

import os
import subprocess
import sys

import log_lines
from compare import compare, copies_of


def changes_by_apt(lock, before, after):
    """The differences that fail a build, as `compare` returns them: only what Python would import."""
    order = search_order()
    seen = dict(
        after,
        copies=[copy for copy in after["copies"] if not is_hidden(copy, before, order)],
        imports=[path for path in after["imports"] if path in before["imports"] or replaces(path, before, order)],
    )
    return [
        (name, was, now, log_lines.BY_APT + ": " + sentence)
        for name, was, now, sentence in compare(lock, before, seen, blame=installed_by)
    ]


def installed_by(_name, come, _before, _after):
    """The Debian packages that the copies `come` belong to, in the form of `compare.pulled_by`."""
    packages = sorted({owner(copy["information"]) for copy in come})
    return " and ".join(packages) + (" installed it" if come else "a Debian package removed it")


def hidden_copies(lock, before, after):
    """Sentences about copies of protected packages that apt installed, and that Python does not import."""
    names = {entry["name"] for part in ("protected", "bounds") for entry in lock[part]}
    order = search_order()
    for copy in after["copies"]:
        if copy["name"] in names and is_hidden(copy, before, order):
            words = "{package} (apt) installed {name} {version} in {site}; Python does not import this copy"
            yield words.format(package=owner(copy["information"]), **copy)


def search_order():
    return [os.path.realpath(path) for path in sys.path]


def is_hidden(copy, before, order):
    """Whether a copy is new, and Python finds an older one first or does not search its directory."""
    older = [other["site"] for other in before["copies"] if other["name"] == copy["name"]]
    is_new = (copy["site"], copy["version"]) not in copies_of(copy["name"], before)
    return is_new and (copy["site"] not in order or any(comes_before(site, copy["site"], order) for site in older))


def replaces(path, before, order):
    """Whether `path` is imported in place of a module that was there."""
    site, name = os.path.split(path)
    older = [os.path.dirname(other) for other in before["imports"] if os.path.basename(other) == name]
    return site in order and bool(older) and not any(comes_before(other, site, order) for other in older)


def comes_before(site, other, order):
    return site in order and order.index(site) < order.index(other)


def owner(path):
    """The Debian package that a path belongs to."""
    try:
        found = subprocess.check_output(["dpkg-query", "--search", path], stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return "a Debian package"
    return found.decode("utf-8", "replace").partition(": ")[0].partition(":")[0]
