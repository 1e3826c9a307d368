"""What source distributions need to be built: read from each one, and locked.

Sources: PEP 518 (`[build-system] requires`, and setuptools and wheel where a project says nothing); setuptools, which
adds `setup_requires` to them (`get_requires_for_build_wheel`, PEP 517).
"""

from __future__ import annotations

import ast
import bz2
import contextlib
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, cast

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from toolkit.inventory.contents.distributions import parse_headers, parse_requires_txt
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.compiled import Needs, compile_note, import_note, imported_distributions, needs_of
from toolkit.pins.index.download import fetch_file
from toolkit.pins.index.repositories import read_repository
from toolkit.pins.lock.model import SourceBuild
from toolkit.pins.resolver.pythons import forbids
from toolkit.pins.resolver.question import WITH_PKG_RESOURCES, Answer, Metadata, Question
from toolkit.pins.resolver.resolve import find_releases, first_question, wheels_only
from toolkit.support.errors import CheckFailed
from toolkit.support.files import format_size
from toolkit.support.tomlfile import parse_toml
from toolkit.support.zip_members import read_member

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import LockedPackage
    from toolkit.pins.resolver.resolve import Request, Resolution

_FILES = ("pyproject.toml", "setup.py", "PKG-INFO")
_REQUIRES_TXT = ".egg-info/requires.txt"
_BY_DEFAULT = ("setuptools", "wheel")
_SMALL = 4 << 20
_UNPACKED = 2 << 30  # bytes of a source distribution, which a few MiB may expand to without end
_DAMAGED = (
    *(OSError, ValueError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile),
    *(zlib.error, lzma.LZMAError, struct.error),
)

_NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError)  # of ast.parse: deep nesting exhausts the parser


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of a source distribution: the text of some (None: not there), the paths of all if they are known."""

    texts: Mapping[str, str | None]
    names: frozenset[str] = frozenset()

    @property
    def requires_txt(self) -> str | None:
        """The requirements as setuptools wrote them."""
        return next((text for path, text in self.texts.items() if path.endswith(_REQUIRES_TXT)), None)

    @property
    def has_egg_info(self) -> bool:
        return any(".egg-info/" in path for path in self.names)


@dataclass(frozen=True, slots=True)
class Sources:
    """What the source distributions of a lock need: what is installed to build them, and what a user should know."""

    builds: tuple[SourceBuild, ...] = ()
    needs: tuple[tuple[str, Needs], ...] = ()

    def notes(self, target: PythonTarget, apt: Sequence[str], recipe: str) -> tuple[str, ...]:
        """What the base lacks for a build, with `apt` of the recipe installed."""
        found = []
        for what, needs in self.needs:
            found += [import_note(what, needs, target), compile_note(what, needs, target, apt, recipe)]
        return tuple(filter(None, found))


def lock_sources(uv: Uv, request: Request, resolution: Resolution, downloads: Path) -> Sources:
    """The build requirements of every source distribution in `resolution`; those that need the same share one entry.

    Raises CheckFailed if a source distribution cannot be read, ProgramFailed if its tools are not available.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    needs: list[tuple[str, Needs]] = []
    for package in resolution.packages:
        if package.is_wheel:
            continue
        if package.file is None:
            content = SourceFiles(read_repository(package.url or "", _FILES, uv.scratch))
            what = f"the project of {package.url}"
        else:
            archive = fetch_file(resolution.addresses[package.name], package.sha256, downloads, request.indexes)
            content, what = read_archive(package.file, archive), f"the source distribution {package.file}"
        refuse_other_python(f"{package.name} {package.version}", content, request.target)
        found = needs_of(content.names, content.texts.get("setup.py"), content.texts.get("pyproject.toml"))
        groups.setdefault(build_requirements(what, content, found), []).append(package.name)
        needs.append((f"{package.name} {package.version}", found))
    builds = tuple(
        SourceBuild(tuple(names), requires, _tools(uv, request, requires))
        for requires, names in sorted(groups.items(), key=lambda group: group[1])
    )
    return Sources(builds, tuple(needs))


def refuse_other_python(what: str, content: SourceFiles, target: PythonTarget) -> None:
    """Raise CheckFailed if a project says that it is not for the target's Python: pip would refuse to install it.

    The page of an index says so before, but it may not, and there is none for an address.
    """
    said = parse_headers(content.texts.get("PKG-INFO") or "").get("requires-python", ())
    try:
        table = parse_toml(content.texts.get("pyproject.toml") or "")
        requires = str(next(iter(said), None) or table.get("project", {}).get("requires-python") or "")
        allowed = SpecifierSet(requires).contains(target.environment()["python_full_version"], prereleases=True)
    except (ValueError, AttributeError):
        return  # `build_requirements` reports a file that cannot be read
    if not allowed:
        raise CheckFailed(
            f"{what} {forbids(requires, target.python)}",
            fix="Request another version of it, or start from a base with such a Python (`ctk bases`).",
            code="requirements-conflict",
        )


def source_metadata(uv: Uv, request: Request, name: str, version: str, downloads: Path) -> Metadata | None:
    """The requirements that a release's source distribution holds as text; None if it does not, or has no file."""
    known = Metadata(name, version)
    question = replace(first_question(request), metadata=(*request.metadata, known))
    _, releases = find_releases(uv, question, Answer({name: version}, {}))
    source = next((file for file in releases.get(name, ()) if not file.is_wheel), None)
    if source is None:
        return None
    content = read_archive(source.name, fetch_file(source.url, source.sha256, downloads, request.indexes))
    if content.requires_txt is not None:
        requires, extras = parse_requires_txt(content.requires_txt)
        return replace(known, requires=tuple(requires), extras=tuple(extras))
    # Without requires.txt an egg-info, which setuptools always writes, says that there are no requirements.
    return known if content.has_egg_info else None


def _tools(uv: Uv, request: Request, requires: tuple[str, ...]) -> tuple[LockedPackage, ...]:
    # Extensions are compiled against the numpy of the base: with other headers they would not load.
    there = {"numpy", "oldest-supported-numpy"} if "numpy" in request.target.installed else set()
    # The same applies to its framework, and a build tool must not add the gigabytes of another one.
    wanted = tuple(
        line
        for line in requires
        if (name := canonicalize_name(Requirement(line).name)) not in there and knowledge().framework_of(name) is None
    )
    return wheels_only(uv, Question(request.target, wanted, exclude_newer=request.exclude_newer)) if wanted else ()


def build_requirements(what: str, content: SourceFiles, needs: Needs) -> tuple[str, ...]:
    """What a source distribution says that it needs to be built, and what its `setup.py` imports or requires."""
    pyproject, setup = content.texts.get("pyproject.toml"), content.texts.get("setup.py")
    try:
        table = parse_toml(pyproject) if pyproject is not None else {}
        said = table.get("build-system", {}).get("requires")
        requires = _BY_DEFAULT if said is None else tuple(str(Requirement(line)) for line in said)
    except (ValueError, AttributeError, TypeError, InvalidRequirement) as error:
        raise _unreadable(what, error) from error
    needs_wheel = any(Requirement(line).name == "setuptools" for line in requires)
    names = {canonicalize_name(Requirement(line).name) for line in requires}
    found = [*requires, *(["wheel"] if needs_wheel and "wheel" not in names else [])]
    if needs_wheel:
        found += [
            requirement
            for requirement in _setup_requires(setup or "")
            if canonicalize_name(Requirement(requirement).name) not in names
        ]
        names |= {canonicalize_name(Requirement(line).name) for line in found}
    found += [
        distribution
        for distribution in imported_distributions(needs)
        if distribution not in names and distribution != "wheel"
    ]
    if setup is not None and "pkg_resources" in _imports(setup):
        found.append(WITH_PKG_RESOURCES)
    return tuple(sorted(set(found)))


def _unreadable(what: str, error: Exception) -> CheckFailed:
    return CheckFailed(
        f"{what} cannot be read: {error}", fix="Request a version that has a wheel.", code="unreadable-source"
    )


def read_archive(name: str, content: bytes) -> SourceFiles:
    """What ctk reads of the source distribution called `name`. Raises CheckFailed if it cannot be read."""
    texts: dict[str, str | None] = {}
    paths: list[str] = []

    def wanted(path: str, size: int) -> bool:
        paths.append(path)
        return size <= _SMALL and (path in _FILES or path.endswith(_REQUIRES_TXT))

    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as zipped:
                for entry in zipped.infolist():
                    if not entry.is_dir() and wanted(path := _below_top(entry.filename), entry.file_size):
                        texts[path] = read_member(zipped, entry, _SMALL).decode(errors="replace")
        else:
            with tarfile.open(fileobj=_Unpacked(_decompressed(content)), mode="r:") as archive:
                for member in archive:
                    if member.isfile() and wanted(path := _below_top(member.name), member.size):
                        file = archive.extractfile(member)
                        texts[path] = file.read().decode(errors="replace") if file is not None else None
    except _DAMAGED as error:
        raise _unreadable(f"the source distribution {name}", error) from error
    return SourceFiles(texts, frozenset(paths))


def _decompressed(content: bytes) -> IO[bytes]:
    """What the formats of source distributions begin with: gzip, bzip2, xz; else a plain tar."""
    file = io.BytesIO(content)
    if content.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.open(file))
    if content.startswith(b"BZh"):
        return bz2.open(file)
    return lzma.open(file) if content.startswith(b"\xfd7zXZ\0") else file


class _Unpacked(io.RawIOBase):
    """An archive of which tarfile reads neither more nor further than a source distribution is large."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _SMALL:
            raise ValueError(f"{size} bytes are to be read at once")
        self._require(self._file.tell() + size)
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._require(offset)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def _require(self, end: int) -> None:
        if end > _UNPACKED:
            raise ValueError(f"it has more than {format_size(_UNPACKED)}, unpacked")


def _below_top(path: str) -> str:
    """`setup.py` of `thing-1.0/setup.py`."""
    return path.removeprefix("./").partition("/")[2]


def _setup_requires(setup: str) -> list[str]:
    """What `setup(setup_requires=[…])` lists, as far as it is plain text: flash-attn's psutil, for one."""
    try:
        nodes = list(ast.walk(ast.parse(setup)))
    except _NO_PROGRAM:
        return []
    keywords = [keyword for node in nodes if isinstance(node, ast.Call) for keyword in node.keywords]
    lists = [keyword.value for keyword in keywords if keyword.arg == "setup_requires"]
    found = []
    for node in (item for listed in lists if isinstance(listed, (ast.List, ast.Tuple)) for item in listed.elts):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            with contextlib.suppress(InvalidRequirement):
                found.append(str(Requirement(node.value)))
    return found


def _imports(setup: str) -> set[str]:
    """The names that a `setup.py` imports; a script for Python 2 is searched as text."""
    try:
        tree = ast.parse(setup)
    except _NO_PROGRAM:
        return {"pkg_resources"} if "pkg_resources" in setup else set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found
