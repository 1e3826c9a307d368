"""Differences between two images: distributions, versions, hashes of files, and packages of dpkg and conda."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.inventory.contents.read import read_inventory
from toolkit.inventory.contents.record import hash_of, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.inventory.contents.model import Distribution, Inventory, SystemPackage
    from toolkit.inventory.formats.rootfs import Rootfs

# The installer and the origin of a distribution differ between pip and uv; its files do not.
_OF_THE_INSTALLER = ("/INSTALLER", "/RECORD", "/REQUESTED", "/direct_url.json", "/uv_build.json", "/uv_cache.json")
_BYTECODE = re.compile(r"\.py[co]$|/__pycache__/")
_LONGEST_PATH = 4096
_CONSOLE_SCRIPT = re.compile(r"^([^#\[=\s][^=]*?)\s*=", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `kind` is "interpreter", "distribution", "file", "apt" or "conda"; None: it is not there."""

    kind: str
    name: str
    where: str
    first: str | None
    second: str | None


def compare(first: Rootfs, second: Rootfs, *, hash_files: bool = False) -> tuple[Difference, ...]:
    """All differences between two images; none if they hold the same.

    The files of a distribution are compared by what its RECORD says; with `hash_files` by their content as well, and
    so is all in the site directories that no RECORD lists: each of them is read. Left out are bytecode, what only the
    installer wrote of itself, and console scripts, whose text pip and uv write differently. Raises WrongInput if an
    image is damaged.
    """
    former, latter = read_inventory(first), read_inventory(second)
    found = [*_interpreters(former, latter), *_distributions(former, latter)]
    for ours, theirs in _pairs(former, latter):
        if ours.version == theirs.version:
            found += _files(first, ours, second, theirs, hash_files=hash_files)
    if hash_files:
        found += _unrecorded(first, former, second, latter)
    found += _packages("apt", former.system_packages, latter.system_packages)
    found += _packages("conda", former.conda_packages, latter.conda_packages)
    return tuple(found)


def _interpreters(former: Inventory, latter: Inventory) -> Iterator[Difference]:
    first = {interpreter.path: interpreter.version for interpreter in former.interpreters}
    second = {interpreter.path: interpreter.version for interpreter in latter.interpreters}
    yield from _values("interpreter", first, second, "")


def _by_place(inventory: Inventory) -> dict[tuple[str, str], list[Distribution]]:
    found: dict[tuple[str, str], list[Distribution]] = {}
    for distribution in inventory.distributions:
        found.setdefault((distribution.directory, distribution.name), []).append(distribution)
    return found


def _distributions(former: Inventory, latter: Inventory) -> Iterator[Difference]:
    first, second = _by_place(former), _by_place(latter)
    for directory, name in sorted(first.keys() | second.keys()):
        versions = [
            " and ".join(sorted(found.version for found in place.get((directory, name), []))) or None
            for place in (first, second)
        ]
        if versions[0] != versions[1]:
            yield Difference("distribution", name, directory, versions[0], versions[1])


def _pairs(former: Inventory, latter: Inventory) -> Iterator[tuple[Distribution, Distribution]]:
    second = _by_place(latter)
    for place, ours in sorted(_by_place(former).items()):
        yield from zip(ours, second.get(place, []), strict=False)


def _files(
    first: Rootfs, ours: Distribution, second: Rootfs, theirs: Distribution, *, hash_files: bool
) -> Iterator[Difference]:
    yield from _values("file", _own_files(first, ours), _own_files(second, theirs), ours.name)
    if not hash_files:
        return
    for path in sorted(_own_files(first, ours).keys() & _own_files(second, theirs).keys()):
        hashes = hash_of(first, path), hash_of(second, path)
        if hashes[0] != hashes[1]:
            yield Difference("file", path, ours.name, hashes[0], hashes[1])


def _unrecorded(first: Rootfs, former: Inventory, second: Rootfs, latter: Inventory) -> Iterator[Difference]:
    """A distribution without a RECORD, or a single module: an import finds it, too."""
    recorded: set[str] = set()
    for rootfs, inventory in ((first, former), (second, latter)):
        recorded.update(*(read_record(rootfs, distribution) for distribution in inventory.distributions))

    def contents(rootfs: Rootfs, inventory: Inventory) -> dict[str, str]:
        return {path: _content(rootfs, path) for path in _site_files(rootfs, inventory) if path not in recorded}

    yield from _values("file", contents(first, former), contents(second, latter), "")


def _site_files(rootfs: Rootfs, inventory: Inventory) -> Iterator[str]:
    """Every file below the site directories; symlinks are not followed, so that each is met once."""
    ahead = [directory for interpreter in inventory.interpreters for directory in interpreter.site_directories]
    seen = set()
    while ahead:
        directory = ahead.pop()
        if directory in seen or len(directory) > _LONGEST_PATH:
            continue
        seen.add(directory)
        for path in (f"{directory}/{name}" for name in rootfs.names(directory)):
            if rootfs.readlink(path) is None and rootfs.is_directory(path):
                ahead.append(path)
            elif not _BYTECODE.search(path) and not (
                directory.endswith(".dist-info") and path.endswith(_OF_THE_INSTALLER)
            ):
                yield path


def _content(rootfs: Rootfs, path: str) -> str:
    link = rootfs.readlink(path)
    return f"-> {link}" if link is not None else hash_of(rootfs, path) or "no file"


def _own_files(rootfs: Rootfs, distribution: Distribution) -> dict[str, str]:
    scripts = set(_CONSOLE_SCRIPT.findall(rootfs.read_text(f"{distribution.metadata}/entry_points.txt", 1 << 20) or ""))

    def counts(path: str) -> bool:
        if path.startswith(distribution.metadata + "/"):
            return not path.endswith(_OF_THE_INSTALLER)
        generated = posixpath.basename(posixpath.dirname(path)) == "bin" and posixpath.basename(path) in scripts
        return not generated and not _BYTECODE.search(path)

    return {path: value for path, value in read_record(rootfs, distribution).items() if counts(path)}


def _packages(kind: str, former: Iterable[SystemPackage], latter: Iterable[SystemPackage]) -> Iterator[Difference]:
    def versions(packages: Iterable[SystemPackage]) -> dict[str, str]:
        return {package.name: " ".join(filter(None, (package.version, package.build))) for package in packages}

    yield from _values(kind, versions(former), versions(latter), "")


def _values(kind: str, first: Mapping[str, str], second: Mapping[str, str], where: str) -> Iterator[Difference]:
    for name in sorted(first.keys() | second.keys()):
        if first.get(name) != second.get(name):
            yield Difference(kind, name, where, first.get(name), second.get(name))
