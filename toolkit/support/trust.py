"""Whether a work area is trusted: files that are executed or used in builds belong to this user or to root.

Another user may have created `$SCRATCH/ctk`, with a `uv` or a base in it that would become the root of an image. ctk
checks the area's root and the directories that it keeps there. Root does not trust files of other users either. The
directories above the area belong to the site: a user who can write there can replace the area, but the next command
then sees another owner. `ctk doctor` reports a parent that is writable by all without a sticky bit; other commands do
not refuse it, because some sites have such scratch file systems, and their users cannot change them.
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
# How many levels of each directory are checked. Below these uv and the runtime keep thousands of files, in
# directories that other users cannot write to. Files in `tmp` are never reused.
_LEVELS = {"bases": 1, "cache": 2, "layer-trials": 1, "spython": 1, "store": 2, "tmp": _ITSELF, "told": 1, "uv": 1}
_UV_LOCK = ".lock"  # uv creates it with mode 0666, for shared caches; it is always empty
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_SEARCH = stat.S_IXGRP | stat.S_IXOTH


@dataclass(frozen=True, slots=True)
class Trust:
    """Reasons not to trust a work area.

    `objection` says why it is not used, or is None. `open` are this user's own paths that others can write to;
    `open_above` is a directory above the area in which any user can rename files of others.
    """

    objection: str | None = None
    open: tuple[Path, ...] = ()
    open_above: Path | None = None


def examine(root: Path) -> Trust:
    """Check the work area `root`, which need not exist. Nothing is changed."""
    above = open_above(root)
    own: list[Path] = []
    for path, status, reachable in _entries(root):
        if not is_trusted(status.st_uid):
            return Trust(f"{path} belongs to {user_name(status.st_uid)}, not to you or root", open_above=above)
        if not (reachable and status.st_mode & _OTHERS_WRITE) or stat.S_ISLNK(status.st_mode) or path.name == _UV_LOCK:
            continue
        if status.st_uid == os.geteuid():
            if path == root and status.st_mode & stat.S_ISVTX:  # to close it would take it from all others
                return Trust(f"{path} is a directory for all users, like /tmp", open_above=above)
            own.append(path)
        elif not status.st_mode & stat.S_ISVTX:
            return Trust(f"{path} belongs to root, but others can write to it", open_above=above)
    return Trust(None, tuple(own), above)


def secure(area: WorkArea) -> tuple[Path, ...]:
    """Remove other users' write permission from this user's work area; return the paths that were writable by them.

    Raises MissingOnHost if something in the area is not trusted, or stays writable. It costs one lstat for each of
    some hundred files.
    """
    trust = examine(area.path)
    if trust.objection is not None:
        raise _refusal(area, trust.objection)
    for path in trust.open:
        with contextlib.suppress(OSError):
            change_own_mode(path, remove=_OTHERS_WRITE, follow=True)
    if trust.open and (left := examine(area.path).open):
        raise _refusal(area, f"others can write to {left[0]}, and its file system does not allow changing that")
    with contextlib.suppress(OSError):  # so that others cannot reach what uv creates there under umask 002
        change_own_mode(area.path / "cache" / "uv", remove=0o077)
    return trust.open


def _refusal(area: WorkArea, objection: str) -> MissingOnHost:
    return MissingOnHost(
        f"the work area {area.path} (chosen by {area.chosen_by}) is not trusted: {objection}",
        fix="Set CTK_HOME to a directory of your own, for example on scratch.",
        code="work-area-not-trusted",
    )


def _entries(root: Path) -> Iterator[tuple[Path, os.stat_result, bool]]:
    """The area's root and the files that ctk keeps there, each with its status, and whether others can reach it."""
    yield from _tree(root, _ITSELF, reachable=True)
    with contextlib.suppress(OSError):
        reachable = bool(root.stat().st_mode & _OTHERS_SEARCH)
        for name, levels in _LEVELS.items():
            yield from _tree(root / name, levels, reachable=reachable)


def _tree(path: Path, levels: int, *, reachable: bool) -> Iterator[tuple[Path, os.stat_result, bool]]:
    """`path`, the target of a symlink, and `levels` levels below; more if others could have written there."""
    try:
        status = path.lstat()
        yield path, status, reachable
        if is_link := stat.S_ISLNK(status.st_mode):
            status = path.stat()
            yield path, status, reachable
    except OSError:  # it does not exist, or was just removed
        return
    open_to_others = reachable and not is_link and status.st_mode & _OTHERS_WRITE
    if not stat.S_ISDIR(status.st_mode) or not (levels > 0 or (levels != _ITSELF and open_to_others)):
        return
    with contextlib.suppress(OSError):  # this user's own directory, but unreadable
        for child in sorted(path.iterdir()):
            yield from _tree(child, max(levels - 1, 0), reachable=bool(reachable and status.st_mode & _OTHERS_SEARCH))


def open_above(path: Path) -> Path | None:
    """The nearest directory above `path` in which any user can rename files of others; None if there is none."""
    for directory in Path(os.path.realpath(path)).parents:
        with contextlib.suppress(OSError):
            if directory.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
                return directory
    return None
