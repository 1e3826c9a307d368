"""The states of an image's trees, as the guard's payload takes them of a disk: what its rules compare.

Between two trees only what the layers touch can differ: nothing else is read a second time, and no content at all
but that of touched files.
"""

from __future__ import annotations

import hashlib
import io
import posixpath
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from toolkit.inventory.contents.environment import read_environment
from toolkit.inventory.contents.interpreters import find_interpreters
from toolkit.inventory.formats.tree import EntryKind
from toolkit.pins.guard.payload import state as payload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.inventory.formats.rootfs import Rootfs

State = dict[str, Any]  # of the payload: "copies", "files", "imports"

_CHUNK = 1 << 20


class TreeDisk:
    """The files of a tree in the place of the payload's `Disk`."""

    def __init__(self, rootfs: Rootfs) -> None:
        self._rootfs = rootfs

    def is_file(self, path: str) -> bool:
        return self._rootfs.is_file(path)

    def names(self, directory: str) -> tuple[str, ...]:
        return self._rootfs.names(directory)

    def lines(self, path: str, newline: str | None = None) -> IO[str]:
        file = self._rootfs.open(path)
        return io.TextIOWrapper(file or io.BytesIO(), encoding="utf-8", errors="replace", newline=newline)

    def files_below(self, top: str) -> Iterator[str]:
        for name in self._rootfs.names(top):
            path = posixpath.join(top, name)
            if self._rootfs.readlink(path) is None and self._rootfs.is_directory(path):
                yield from self.files_below(path)
            elif not self._rootfs.is_directory(path):
                yield path


@dataclass(frozen=True, slots=True)
class Touched:
    """The paths that layers hold: `directories` may hold more of the tree below, `others` replace or hide it."""

    directories: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    @classmethod
    def by(cls, layers: Iterable[Rootfs]) -> Touched:
        """What some layers touch; each is given as a tree of its own."""
        directories: set[str] = set()
        others: set[str] = set()
        for layer in layers:
            for directory, entries in layer.walk(lambda _: True):
                directories.add(directory)
                others.update(
                    posixpath.join(directory, name) for name, kind in entries.items() if kind is not EntryKind.DIRECTORY
                )
        return cls(frozenset(directories), frozenset(others))

    def __or__(self, other: Touched) -> Touched:
        return Touched(self.directories | other.directories, self.others | other.others)

    def covers(self, path: str) -> bool:
        """Whether something at or below `path`, which is there and passes no symlink, may have changed."""
        return path in self.directories or path in self.others


@dataclass(frozen=True, slots=True)
class View:
    """A tree, and the copies of distributions in its site directories, by the path of their metadata.

    `found` are the paths at which site directories were found, `sites` these without symlinks.
    """

    rootfs: Rootfs
    found: tuple[str, ...]
    sites: tuple[str, ...]
    copies: Mapping[str, Mapping[str, Any]]

    @property
    def disk(self) -> TreeDisk:
        return TreeDisk(self.rootfs)


def view_of(rootfs: Rootfs, searched: Iterable[str] = ()) -> View:
    """The whole tree is searched for site directories, as the payload does; `searched` are some that Python names."""
    found = {*_sites_below(rootfs, rootfs), *filter(rootfs.is_directory, searched)}
    return _read(rootfs, found, {}, Touched())


def view_over(
    earlier: View, rootfs: Rootfs, touched: Touched, layers: Iterable[Rootfs], searched: Iterable[str] = ()
) -> View:
    """The view of `rootfs`, which is the tree of `earlier` with `layers` over it."""
    found = {path for path in earlier.found if rootfs.is_directory(path)}  # a symlink may lead elsewhere now
    found.update(filter(rootfs.is_directory, searched))
    for layer in layers:
        found.update(_sites_below(layer, rootfs))
    return _read(rootfs, found, earlier.copies, touched)


def search_order(rootfs: Rootfs, executable: str | None) -> list[str]:
    """The site directories in which the guard's Python would search: that program, else the default one."""
    environment = {name: value for name, value in read_environment(rootfs)[0].items() if name != "PYTHONPATH"}
    found = find_interpreters(rootfs, environment, {})
    wanted = rootfs.resolve(executable) if executable else None
    named = [python for python in found if wanted is not None and rootfs.resolve(python.path) == wanted]
    return list((named or found)[0].site_directories) if found else []


def states(lock: Mapping[str, Any], before: View, after: View, touched: Touched) -> tuple[State, State]:
    """Both states for `compare`. Of the protected distributions only files that `touched` may concern are listed."""
    guarded = {pin["name"] for pin in lock["protected"]}
    changed = _Changes(before.rootfs, after.rootfs, touched)
    listed = {
        path: [file for file in payload.own_files(dict(copy), before.disk) if changed.may_differ(file)]
        for path, copy in before.copies.items()
        if copy["name"] in guarded
    }
    paths = {file for files in listed.values() for file in files}

    def state(view: View) -> State:
        return {
            "copies": [
                {**copy, "record": _record(view, path, touched), "files": sorted(listed.get(path, ()))}
                if copy["name"] in guarded
                else dict(copy)
                for path, copy in view.copies.items()
            ],
            "files": {path: [None, _content(view.rootfs, path)] for path in paths},
            "imports": _importable(view, guarded),
        }

    return state(before), state(after)


def _read(rootfs: Rootfs, found: set[str], known: Mapping[str, Mapping[str, Any]], touched: Touched) -> View:
    disk = TreeDisk(rootfs)
    sites = {rootfs.resolve(path) or path for path in found}
    copies: dict[str, Mapping[str, Any]] = {}
    for site in sorted(sites):
        for entry in rootfs.names(site):
            path = posixpath.join(site, entry)
            if path in known and _is_as_before(path, rootfs, touched):
                copies[path] = known[path]
            elif (copy := payload.read_copy(site, entry, disk)) is not None:
                copies[path] = copy
    return View(rootfs, tuple(sorted(found)), tuple(sorted(sites)), copies)


def _is_as_before(path: str, rootfs: Rootfs, touched: Touched) -> bool:
    """Whether the metadata at `path` is what it was before the layers: not touched, and no symlink leads out of it."""
    inside = (posixpath.join(path, name) for name in (rootfs.names(path) if rootfs.is_directory(path) else ()))
    return (
        not touched.covers(path)
        and rootfs.resolve(path) == path
        and all(rootfs.readlink(file) is None for file in inside)
    )


def _sites_below(tree: Rootfs, rootfs: Rootfs) -> Iterator[str]:
    """The site directories of `rootfs` that `tree`, itself or one of its layers, has."""

    def enter(path: str) -> bool:
        name = posixpath.basename(path)
        return name not in payload.SITE_NAMES and name != "__pycache__" and path not in payload.NOT_WALKED

    for directory, entries in tree.walk(enter):
        for name in payload.SITE_NAMES:
            path = posixpath.join(directory, name)
            if name in entries and path not in payload.NOT_WALKED and rootfs.is_directory(path):
                yield path


def _record(view: View, path: str, touched: Touched) -> str | None:
    """The digest of a RECORD; one that is not touched differs from no other state's."""
    if _is_as_before(path, view.rootfs, touched):
        return "not touched"
    found: str | None = payload.record_digest(view.copies[path]["information"], view.disk)
    return found


def _importable(view: View, guarded: set[str]) -> list[str]:
    tops = {
        name
        for copy in view.copies.values()
        if copy["name"] in guarded
        for name in payload.import_names(dict(copy), view.disk)
    }
    names = sorted(tops - set(payload.NOT_SHADOWS))
    return [
        posixpath.join(site, name)
        for site in view.sites
        for name in names
        if payload.is_importable(site, name, view.disk)
    ]


def _content(rootfs: Rootfs, path: str) -> str | None:
    """What the payload's `hash_file` says of a file."""
    target = rootfs.readlink(path)
    if target is not None:
        return f"link:{target}"
    file = rootfs.open(path)
    if file is None:
        return None
    digest = hashlib.sha256()
    with file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class _Changes:
    """Which files of a tree may differ in the other, by their directories."""

    def __init__(self, before: Rootfs, after: Rootfs, touched: Touched) -> None:
        self._before, self._after, self._touched = before, after, touched
        self._known: dict[str, tuple[bool, str | None]] = {}

    def may_differ(self, path: str) -> bool:
        directory, name = posixpath.split(path)
        if directory not in self._known:
            real = _real_directory(self._after, directory)
            self._known[directory] = (_real_directory(self._before, directory) != real, real)
        moved, real = self._known[directory]
        if moved or real is None or real not in self._touched.directories:
            return moved
        own = posixpath.join(real, name)
        return self._touched.covers(own) or not (self._after.exists(own) or self._after.readlink(own) is not None)


def _real_directory(rootfs: Rootfs, path: str) -> str | None:
    return rootfs.resolve(path) if rootfs.is_directory(path) else None
