"""Hard links of the base: a layer that changes one name of a file gets all its names, as the flat image has them.

An overlay copies one name and leaves the others as they were, with the old content and number of links.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

from toolkit.builds.layers.normalise import CannotNormalise, own_attributes
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.builds.layers.below import Key, Lower, Seen
    from toolkit.builds.layers.normalise import Changes


def relink(upper: str, lower: Lower, changes: Changes) -> None:
    """Add to the tree at `upper` what hard links need. Raises CannotNormalise where that cannot be known, OSError."""
    copies = _copies(upper, lower, changes)
    open_groups = {key for key, paths in changes.touched.items() if len(paths) < lower.links(key)}
    names = _names(lower, open_groups)
    for key, touched in changes.touched.items():
        left = sorted(names.get(key, set()) - touched)
        files = copies.get(key, [])
        if changes.kernel and any(_is_file(os.path.join(upper, path)) for path in touched):
            raise CannotNormalise(
                f"{min(touched)} has several names, and the overlay here does not say what became of it"
            )
        if left or len(files) > 1:
            _join(upper, lower, files, left)


def _names(lower: Lower, keys: set[Key]) -> dict[Key, set[str]]:
    """All names that are seen of these files. Lists every directory below, so only if there are any."""
    found: dict[Key, set[str]] = {}
    if keys:
        for path, entry in lower.files(lower.root, ""):
            if entry.kind is EntryKind.FILE and entry.key in keys:
                found.setdefault(entry.key, set()).add(path)
    return found


def _copies(upper: str, lower: Lower, changes: Changes) -> dict[Key, list[str]]:
    """The different files in the upper directory that the overlay copied from one below, by that one."""
    found: dict[Key, list[str]] = {}
    seen: set[tuple[int, int]] = set()
    for path, origin in sorted(changes.origins.items()):
        state = os.lstat(os.path.join(upper, path))
        below = lower.find(origin)
        if below is None or below.is_directory or (state.st_dev, state.st_ino) in seen:
            continue
        seen.add((state.st_dev, state.st_ino))
        found.setdefault(below.key, []).append(path)
    return found


def _join(upper: str, lower: Lower, files: list[str], left: list[str]) -> None:
    """Make `files`, which are one file in the flat image, and the names `left` below one file with many names."""
    if len({_content(os.path.join(upper, path)) for path in files}) > 1:
        raise CannotNormalise(
            f"{' and '.join(files)} are two names of one file, and were changed apart from each other"
        )
    if not files:
        below = lower.find(left[0])
        assert below is not None, "it was listed"  # noqa: S101
        copy_file(lower, below, _place(upper, lower, left[0]))
        files, left = left[:1], left[1:]
    first = os.path.join(upper, files[0])
    for path in files[1:]:
        _replace_all(upper, os.path.join(upper, path), first)
    for path in left:
        os.link(first, _place(upper, lower, path), follow_symlinks=False)


def _replace_all(upper: str, old: str, new: str) -> None:
    """Let every name of the file `old` in the upper directory be a name of `new`."""
    wanted = os.lstat(old)
    for directory, _, names in os.walk(upper):
        for name in names:
            path = os.path.join(directory, name)
            state = os.lstat(path)
            if (state.st_dev, state.st_ino) == (wanted.st_dev, wanted.st_ino):
                os.unlink(path)
                os.link(new, path)


def _place(upper: str, lower: Lower, path: str) -> str:
    """Where a name goes in the upper directory, its directories copied from below."""
    copy_directories(upper, lower, os.path.dirname(path))
    return os.path.join(upper, path)


def copy_directories(upper: str, lower: Lower, path: str) -> None:
    """Let `path` be a directory in the upper tree, each on the way with the owner, mode and attributes it has below."""
    way, below = upper, lower.root
    for name in filter(None, path.split("/")):
        way = os.path.join(way, name)
        child = lower.children(below).get(name) if below is not None and below.is_directory else None
        try:
            os.mkdir(way, 0o755)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(way).st_mode):
                raise
        else:
            if child is not None and child.is_directory:
                _take_status(lower, child, way)
        below = child  # type: ignore[assignment]


def copy_file(lower: Lower, below: Seen, path: str) -> None:
    """A new file at `path` that is as the one below: content, owner, mode, attributes and time."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        for piece in lower.read(below):
            file.write(piece)
    _take_status(lower, below, path)


def _take_status(lower: Lower, below: Seen, path: str) -> None:
    status = lower.status(below)
    os.chown(path, status.uid, status.gid, follow_symlinks=False)
    os.chmod(path, stat.S_IMODE(status.mode))
    for name, value in status.attributes.items():
        if not name.startswith("trusted."):  # not readable in a namespace, so not in the flat image either
            os.setxattr(path, name, value)
    os.utime(path, (status.modified, status.modified))


def _content(path: str) -> tuple[object, ...]:
    state = os.lstat(path)
    with open(path, "rb") as file:
        digest = _digest(iter(lambda: file.read(1 << 20), b""))
    attributes = tuple(sorted(own_attributes(path).items()))
    return state.st_mode, state.st_uid, state.st_gid, digest, attributes


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _is_file(path: str) -> bool:
    return os.path.lexists(path) and stat.S_ISREG(os.lstat(path).st_mode)
