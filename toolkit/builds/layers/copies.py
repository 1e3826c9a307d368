"""What is copied from below before the script runs, because the overlay would copy it wrongly when it is changed.

The kernel's overlay copies one name of several hard links, and the others keep the old content. A file with a
capability cannot be copied at all: squashfuse 0.1.104 lists the attribute under a wrong name. What the script left as
it was is removed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from toolkit.builds.layers.below import Key, Lower, Seen
from toolkit.builds.layers.normalise import OVERLAY_PREFIXES, CannotNormalise
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolkit.inventory.formats.squashfs import Squashfs
    from toolkit.inventory.formats.status import Status

# More than this is not copied: an image of conda may have hard links of gigabytes.
MOST_LINKED = 64 << 20  # bytes
_NAMED = (stat.S_IFIFO, stat.S_IFSOCK)
_CAPABILITY = "security.capability"
# What link(2) says on a file system without hard links, and between directories on one that has them in one only.
NO_LINKS = (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)


class Special(NamedTuple):
    """A path of a file in one tree, its inode there, its number of links, and its size in bytes."""

    path: str
    reference: int
    links: int
    size: int


class Copy(NamedTuple):
    """A file that was copied: as long as inode and time of change (ns) are these, nothing happened to it."""

    inode: int
    changed: int


def find_specials(lower: Lower, kept: Path) -> list[tuple[int, Special]]:
    """What needs to be copied, with the number of its tree. What is found in a tree is remembered in `kept`.

    Raises CannotNormalise for notes of an overlay in an image, which an overlay over it would believe.
    """
    return [
        (number, special) for number, tree in enumerate(lower.trees) for special in _listed(tree, number, lower, kept)
    ]


def copy_up(upper: str, lower: Lower, specials: list[tuple[int, Special]]) -> dict[str, Copy]:
    """Copy from below what needs it; return the files by path."""
    seen = {}
    for number, special in sorted(specials, key=lambda pair: pair[1].path):
        entry = lower.find(special.path)
        if entry is not None and entry.key == Key(number, special.reference):
            seen[special.path] = (special, entry)
    linked = sum({entry.key: special.size for special, entry in seen.values() if special.links > 1}.values())
    first: dict[Key, str] = {}
    copied = []
    for path, (special, entry) in seen.items():
        if special.links == 1 or linked <= MOST_LINKED:
            copy_directories(upper, lower, os.path.dirname(path))
            here = os.path.join(upper, path)
            if entry.key in first:
                _link(first[entry.key], here)
            else:
                copy_file(lower, entry, here)
                first[entry.key] = here
            copied.append(path)
    return {path: _state(os.path.join(upper, path)) for path in copied}


def _link(first: str, second: str) -> None:
    try:
        os.link(first, second)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        raise CannotNormalise(
            "the base has hard links, and they cannot be made on the disk on which the build unpacks "
            f"({error.strerror}; set CTK_HOME or APPTAINER_TMPDIR to a directory on another one)"
        ) from error


def remove_unchanged(upper: str, copies: Mapping[str, Copy]) -> None:
    """Remove the copies that are as they were made; names of one file are one: its time of change tells."""
    same = [path for path, copy in copies.items() if _is(os.path.join(upper, path), copy)]
    for path in same:
        os.unlink(os.path.join(upper, path))


def _is(path: str, copy: Copy) -> bool:
    try:
        return _state(path) == copy
    except (FileNotFoundError, NotADirectoryError):
        return False


def _state(path: str) -> Copy:
    state = os.lstat(path)
    return Copy(state.st_ino, state.st_ctime_ns)


def _listed(tree: Squashfs, number: int, lower: Lower, kept: Path) -> list[Special]:
    file = kept / f"special-{hashlib.sha256(os.fsencode(lower.names[number])).hexdigest()[:16]}.json"
    if file.is_file():
        return [Special(*fields) for fields in json.loads(file.read_text(encoding="utf-8"))]
    found = _scan(tree)
    file.write_text(json.dumps(found), encoding="utf-8")
    return found


def _scan(tree: Squashfs) -> list[Special]:
    found, waiting = [], [("", tree.root)]
    _refuse_notes("", tree.status(tree.root))
    while waiting:
        directory, entry = waiting.pop()
        for name, child in tree.children(entry).items():
            path = f"{directory}/{name}" if directory else name
            if child.kind is EntryKind.DIRECTORY:
                waiting.append((path, child))
            if child.kind is EntryKind.WHITEOUT:
                continue
            status = tree.status(child)
            _refuse_notes(path, status)
            if child.kind is EntryKind.FILE and (status.links > 1 or _CAPABILITY in status.attributes):
                found.append(Special(path, child.reference, status.links, tree.size(child)))
    return found


def _refuse_notes(path: str, status: Status) -> None:
    for name in status.attributes:
        if name.startswith(OVERLAY_PREFIXES):
            raise CannotNormalise(f"/{path} of the base has the attribute {name}, which an overlay would believe")


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
                take_status(lower, child, way)
        below = child  # type: ignore[assignment]


def copy_file(lower: Lower, below: Seen, path: str) -> None:
    """Make at `path` what is below, no directory: content, owner, mode, attributes and time."""
    kind = stat.S_IFMT(lower.status(below).mode)
    if kind == stat.S_IFLNK:
        os.symlink(lower.target(below), path)
        os.chown(path, *lower.status(below)[1:3], follow_symlinks=False)
        return
    if kind in _NAMED:
        os.mknod(path, kind)
        take_status(lower, below, path)
        return
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        for piece in lower.read(below):
            file.write(piece)
    take_status(lower, below, path)


def take_status(lower: Lower, below: Seen, path: str) -> None:
    """Give a file or directory the owner, mode, attributes and time of the one below."""
    status = lower.status(below)
    os.chown(path, status.uid, status.gid, follow_symlinks=False)
    os.chmod(path, stat.S_IMODE(status.mode))
    for name, value in status.attributes.items():
        # Those of `trusted.` are not readable in a namespace, so they are not in the flat image either.
        if not name.startswith(("trusted.", *OVERLAY_PREFIXES)):
            os.setxattr(path, name, value)
    os.utime(path, (status.modified, status.modified))
