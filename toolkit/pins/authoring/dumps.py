"""What programs print of an environment: `pip list`, `conda list`, `conda list --export`, `conda list --explicit`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from toolkit.inventory.knowledge.names import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PIP_LIST = re.compile(r"^Package +Version\b.*\n-", re.MULTILINE)
_CONDA_LIST = re.compile(r"^# Name +Version +Build\b", re.MULTILINE)
_CONDA_EXPORT = re.compile(r"^# \$ conda create --name \S+ --file\b", re.MULTILINE)
_CONDA_EXPLICIT = re.compile(r"^@EXPLICIT\s*$", re.MULTILINE)
# Where conda's own packages are built: `pip freeze` writes these addresses, which exist on no other machine.
_BUILT_BY_CONDA = re.compile(r"/(?:croot|conda-bld|feedstock_root|tmp/build|tmp/abs_\w+)/")
_CONDA_FILE = re.compile(r"([^/]+)-([^-/]+)-[^-/]+\.(?:conda|tar\.bz2)$")


def listed_requirements(text: str) -> tuple[list[str], list[str]] | None:
    """The requirements of a listing, and the lines that name nothing on PyPI; None if `text` is no listing."""
    readers: tuple[tuple[re.Pattern[str], Callable[[str], tuple[str, str] | None]], ...] = (
        (_PIP_LIST, _of_pip_list),
        (_CONDA_LIST, _of_conda_list),
        (_CONDA_EXPORT, _of_conda_export),
        (_CONDA_EXPLICIT, _of_conda_explicit),
    )
    for mark, read in readers:
        if mark.search(text):
            found, foreign = [], []
            for line in _lines(text):
                pair = read(line)
                if pair is None or not pair[0]:
                    foreign.append(line)
                else:
                    found.append(f"{pair[0]}=={pair[1]}")
            return found, foreign
    return None


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        bare = line.strip()
        if bare and not bare.startswith(("#", "@", "--")) and not re.match(r"Package +Version\b", bare):
            yield bare


def _of_pip_list(line: str) -> tuple[str, str] | None:
    words = line.split()
    # A third column is the directory of an editable installation.
    return (words[0], words[1]) if len(words) == 2 else None


def _of_conda_list(line: str) -> tuple[str, str] | None:
    words = line.split()
    if len(words) < 3:
        return None
    from_pip = words[-1] == "pypi"
    return (words[0] if from_pip else names().from_conda(words[0])), words[1]


def _of_conda_export(line: str) -> tuple[str, str] | None:
    words = line.split("=")
    if len(words) != 3:
        return None
    return (words[0] if words[2] == "pypi_0" else names().from_conda(words[0])), words[1]


def _of_conda_explicit(line: str) -> tuple[str, str] | None:
    found = _CONDA_FILE.search(line.partition("#")[0])
    return (names().from_conda(found[1]), found[2]) if found else None


def pinned_file(name: str, url: str) -> str | None:
    """`NAME @ file:…` of a freeze as a requirement: with the version of the file's name, else the bare name.

    None if the file is neither a release nor built by conda: then the name on the index may belong to another project.
    """
    file = url.partition("#")[0].rpartition("/")[2]
    try:
        if file.endswith(".whl"):
            found, version, _, _ = parse_wheel_filename(file)
        else:
            found, version = parse_sdist_filename(file)
    except (InvalidWheelFilename, InvalidSdistFilename):
        return name if _BUILT_BY_CONDA.search(url) else None
    return f"{name}=={version}" if found == canonicalize_name(name) else None
