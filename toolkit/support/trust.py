"""Whether a work area can be trusted: what is executed or built from there belongs to this user or to root.

`$SCRATCH/ctk` may have been made by somebody else, with a `uv` or a base in it that would become the root of an image.
Looked at are the area's root and the directories that ctk keeps in it; for root, too, files of another user are not
trusted. What is above the area is the site's: who can write there can put another area in its place, whose owner is
seen at the next command. A parent in which everybody can do that is reported by `ctk doctor`, and not refused: sites
have such scratch file systems, and their users cannot change them.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost
from toolkit.support.ownership import change_own_mode, is_trusted, user_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.support.paths import WorkArea

_ITSELF = -1
# How many levels of each directory are looked at. Deeper down uv and the runtime keep thousands of files, in
# directories that nobody else could write to. What lies in `tmp` is never used again.
_LEVELS = {"bases": 1, "cache": 2, "spython": 1, "tmp": _ITSELF, "uv": 1}
_UV_LOCK = ".lock"  # uv makes it with mode 0666, for all who share a cache; it stays empty
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_SEARCH = stat.S_IXGRP | stat.S_IXOTH


@dataclass(frozen=True, slots=True)
class Trust:
    """What speaks against a work area.

    `objection` says why it is not used, None where nothing does. `open` are this user's own paths that others can write
    to; `open_above` is a directory above the area in which everybody can rename what belongs to others.
    """

    objection: str | None = None
    open: tuple[Path, ...] = ()
    open_above: Path | None = None


def examine(root: Path) -> Trust:
    """What speaks against the work area `root`, which need not be there yet. Nothing is changed."""
    above = open_above(root)
    own: list[Path] = []
    for path, status, reachable in _entries(root):
        if not is_trusted(status.st_uid):
            return Trust(f"{path} belongs to {user_name(status.st_uid)}, not to you or root", open_above=above)
        if not (reachable and status.st_mode & _OTHERS_WRITE) or stat.S_ISLNK(status.st_mode) or path.name == _UV_LOCK:
            continue
        if status.st_uid == os.geteuid():
            own.append(path)
        elif not status.st_mode & stat.S_ISVTX:
            return Trust(f"{path} belongs to root, and others can write to it", open_above=above)
    return Trust(None, tuple(own), above)


def secure(area: WorkArea) -> tuple[Path, ...]:
    """Take from others the permission to write in this user's work area; the paths that were open to them.

    Raises MissingOnHost where something in the area is not to be trusted, or stays open. It costs one lstat for each of
    some hundred files.
    """
    trust = examine(area.path)
    if trust.objection is not None:
        raise _refusal(area, trust.objection)
    for path in trust.open:
        with contextlib.suppress(OSError):
            change_own_mode(path, remove=_OTHERS_WRITE, follow=True)
    if trust.open and (left := examine(area.path).open):
        raise _refusal(area, f"others can write to {left[0]}, and its file system does not let that be changed")
    with contextlib.suppress(OSError):  # what uv makes in it under a umask of 002 is then out of reach as well
        change_own_mode(area.path / "cache" / "uv", remove=0o077)
    return trust.open


def _refusal(area: WorkArea, objection: str) -> MissingOnHost:
    return MissingOnHost(
        f"the work area {area.path} (chosen by {area.chosen_by}) cannot be trusted: {objection}",
        fix="Set CTK_HOME to a directory of your own, for example on scratch.",
        code="work-area-not-trusted",
    )


def _entries(root: Path) -> Iterator[tuple[Path, os.stat_result, bool]]:
    """The area's root and what ctk keeps there; with each its status, and whether others can get to it."""
    yield from _tree(root, _ITSELF, reachable=True)
    with contextlib.suppress(OSError):
        reachable = bool(root.stat().st_mode & _OTHERS_SEARCH)
        for name, levels in _LEVELS.items():
            yield from _tree(root / name, levels, reachable=reachable)


def _tree(path: Path, levels: int, *, reachable: bool) -> Iterator[tuple[Path, os.stat_result, bool]]:
    """`path`, where a symlink leads to, and `levels` levels below; more where others could have written there."""
    try:
        status = path.lstat()
        yield path, status, reachable
        if is_link := stat.S_ISLNK(status.st_mode):
            status = path.stat()
            yield path, status, reachable
    except OSError:  # it is not there, or ended meanwhile
        return
    open_to_others = reachable and not is_link and status.st_mode & _OTHERS_WRITE
    if not stat.S_ISDIR(status.st_mode) or not (levels > 0 or (levels != _ITSELF and open_to_others)):
        return
    with contextlib.suppress(OSError):  # a directory of this user that even they cannot read
        for child in sorted(path.iterdir()):
            yield from _tree(child, max(levels - 1, 0), reachable=bool(reachable and status.st_mode & _OTHERS_SEARCH))


def open_above(path: Path) -> Path | None:
    """The nearest directory above `path` in which everybody can rename what others made; None where there is none."""
    for directory in Path(os.path.realpath(path)).parents:
        with contextlib.suppress(OSError):
            if directory.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
                return directory
    return None
