"""The intended requirement in a text that is not valid for pip (PEP 508): `pandas=2`, or the address of a file."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

_FILES = (".whl", ".tar.gz", ".zip")
# `pandas=2.0` and `pandas=2.0=py311_0` are conda's forms; `pandas 2.0` is what `pip list` shows.
_CONDA = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:=\s*|\s)v?([0-9][A-Za-z0-9.!+_*]*)(?:=\S*)?")
# `pandas>=2<3`: bounds without a comma between them.
_BOUND = r"(?:===|~=|==|!=|<=|>=|<|>)\s*[A-Za-z0-9.!+_*-]+"
_BOUNDS = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?)\s*({_BOUND}(?:[\s,]*{_BOUND})+)\s*(;.*)?")
_ADDRESS = re.compile(r"(?:git\+)?(?:https?|ssh|file)://\S+|git@\S+:\S+")


def how_to_write(text: str) -> str | None:
    """How to write what `text` means, as a sentence; None if that is not known."""
    given = text.strip()
    if _ADDRESS.fullmatch(given):
        return _address(given)
    if given.startswith(("./", "../", "/", "~")) or given.endswith(_FILES):
        return "Copy the file into the image with [[files]], and install it in `post`."
    if found := _CONDA.fullmatch(given):
        # conda's `pandas=2` is any 2.x; with a build, or as `pip list` shows it, a version is exact.
        any_below = given.count("=") == 1 and not found[2].endswith("*")
        line = f"{found[1]}=={found[2]}{'.*' if any_below else ''}"
        return f"Write {line}: pip takes two equals signs." if _is_requirement(line) else None
    if found := _BOUNDS.fullmatch(given):
        bounds = ",".join("".join(bound.split()) for bound in re.findall(_BOUND, found[2]))
        line = f"{found[1]}{bounds}{f' {found[3]}' if found[3] else ''}"
        return f"Write {line}: a comma is missing between two bounds." if _is_requirement(line) else None
    return None


def _address(url: str) -> str:
    path = unquote(urlsplit(url).path)
    file = posixpath.basename(path)
    if file.endswith(_FILES) and url.startswith(("http://", "https://")) and "/archive/" not in path:
        return f"Write {_distribution(file) or 'NAME'} @ {url}: the URL follows the package name."
    repository = url if url.startswith("git+") else f"git+{url}"
    if "/archive/" in path or not repository.startswith(("git+http://", "git+https://")):
        return "Write NAME @ git+https://SERVER/PATH@COMMIT, with the commit in full."
    address, _, commit = repository.rpartition("@")
    pinned = repository if address.startswith("git+") and "/" not in commit else f"{repository}@COMMIT"
    return f"Write NAME @ {pinned}, with the name of its package, and the commit in full."


def _distribution(file: str) -> str | None:
    try:
        return parse_wheel_filename(file)[0] if file.endswith(".whl") else parse_sdist_filename(file)[0]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


def exact_version(text: str) -> str | None:
    """The version that a requirement allows alone, as in `numpy==1.24.4`; None if it allows others, or is none."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    clauses = list(requirement.specifier)
    if requirement.url or len(clauses) != 1 or clauses[0].operator not in ("==", "==="):
        return None
    try:
        return str(Version(clauses[0].version))  # no `1.*`, and none from before PEP 440
    except InvalidVersion:
        return None
