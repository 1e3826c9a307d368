"""What source distributions need to become wheels: read out of each, and locked like everything else.

Sources: PEP 518 (`[build-system] requires`, and setuptools and wheel where a project says nothing).
"""

from __future__ import annotations

import ast
import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from toolkit.pins.download import fetch_file
from toolkit.pins.model import Build
from toolkit.pins.question import WITH_PKG_RESOURCES, Question
from toolkit.pins.repositories import read_repository
from toolkit.pins.resolve import wheels_only
from toolkit.support.errors import AnswerIsNo
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolkit.pins.model import Package
    from toolkit.pins.resolve import Resolution, Wish
    from toolkit.pins.uv import Uv

_FILES = ("pyproject.toml", "setup.py")
_BY_DEFAULT = ("setuptools", "wheel")
_SMALL = 4 << 20


def lock_builds(uv: Uv, wish: Wish, resolution: Resolution, downloads: Path) -> tuple[Build, ...]:
    """The build requirements of every source distribution in `resolution`; those that need the same share one entry.

    Raises AnswerIsNo where a source distribution cannot be read, ProgramFailed where its tools cannot be had.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for package in resolution.packages:
        if package.is_wheel:
            continue
        if package.file is None:
            requires = repository_requirements(package.url or "", uv.scratch)
        else:
            content = fetch_file(resolution.addresses[package.name], package.sha256, downloads, wish.indexes)
            requires = build_requirements(package.file, content)
        groups.setdefault(requires, []).append(package.name)
    return tuple(
        Build(tuple(names), requires, _tools(uv, wish, requires))
        for requires, names in sorted(groups.items(), key=lambda group: group[1])
    )


def _tools(uv: Uv, wish: Wish, requires: tuple[str, ...]) -> tuple[Package, ...]:
    # Extensions are compiled against the numpy that the base has: with another one's headers they would not load.
    there = {"numpy", "oldest-supported-numpy"} if "numpy" in wish.target.installed else set()
    wanted = tuple(line for line in requires if canonicalize_name(Requirement(line).name) not in there)
    return wheels_only(uv, Question(wish.target, wanted, exclude_newer=wish.exclude_newer)) if wanted else ()


def build_requirements(name: str, content: bytes) -> tuple[str, ...]:
    """What the source distribution called `name` says that it needs to be built, in one order for all."""
    try:
        files = _read(name, content)
    except (ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise _unreadable(f"the source distribution {name}", error) from error
    return _requirements(f"the source distribution {name}", files)


def repository_requirements(url: str, scratch: Path) -> tuple[str, ...]:
    """What the project at a commit, `git+https://…@COMMIT`, says that it needs to be built."""
    return _requirements(f"the project of {url}", read_repository(url, _FILES, scratch))


def _requirements(what: str, files: Mapping[str, str | None]) -> tuple[str, ...]:
    """The build requirements by `pyproject.toml` and `setup.py`, None for one that is not there."""
    pyproject, setup = files.get("pyproject.toml"), files.get("setup.py")
    try:
        table = parse_toml(pyproject) if pyproject is not None else {}
        said = table.get("build-system", {}).get("requires")
        requires = _BY_DEFAULT if said is None else tuple(str(Requirement(line)) for line in said)
    except (ValueError, AttributeError, TypeError, InvalidRequirement) as error:
        raise _unreadable(what, error) from error
    needs_wheel = any(Requirement(line).name == "setuptools" for line in requires)
    names = {Requirement(line).name for line in requires}
    found = [*requires, *(["wheel"] if needs_wheel and "wheel" not in names else [])]
    if setup is not None and "pkg_resources" in _imports(setup):
        found.append(WITH_PKG_RESOURCES)
    return tuple(sorted(set(found)))


def _unreadable(what: str, error: Exception) -> AnswerIsNo:
    return AnswerIsNo(
        f"{what} cannot be read: {error}", fix="Ask for a version that has a wheel.", code="unreadable-source"
    )


def _read(name: str, content: bytes) -> dict[str, str]:
    """`pyproject.toml` and `setup.py` of the archive's top directory."""
    found: dict[str, str] = {}
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                if _top_level(entry.filename) in _FILES and entry.file_size <= _SMALL:
                    found[_top_level(entry.filename)] = archive.read(entry).decode(errors="replace")
    else:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                file = archive.extractfile(member) if _top_level(member.name) in _FILES and member.isfile() else None
                if file is not None and member.size <= _SMALL:
                    found[_top_level(member.name)] = file.read().decode(errors="replace")
    return found


def _top_level(path: str) -> str:
    """`setup.py` of `thing-1.0/setup.py`; nothing for what lies deeper."""
    parts = path.removeprefix("./").split("/")
    return parts[1] if len(parts) == 2 else ""


def _imports(setup: str) -> set[str]:
    """The names that a `setup.py` imports; a script for Python 2 is searched as text."""
    try:
        tree = ast.parse(setup)
    except SyntaxError:
        return {"pkg_resources"} if "pkg_resources" in setup else set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found
