"""Remove what killed builds and shells left in the directories for temporary files, where containers see them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost
from toolkit.support.staging import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The directory of a guard, which has this name only while a process has it open (toolkit/pins/guard/script.py), and
# the certificates that are lent to a shell, which the process that lends them has open.
_LEFT = re.compile(r"ctk-guard\.\w{6}|ctk-\w{8}\.pem")


def sweep_temporary(directories: Iterable[Path] | None = None) -> None:
    """Remove this user's own files there that no process has open. By default in /tmp and this process's own."""
    places = {Path("/tmp"), Path(tempfile.gettempdir())} if directories is None else {*directories}  # noqa: S108
    with contextlib.ExitStack() as stack:
        found = [left for place in sorted(places) for left in _opened(place, stack)]
        # Everything found was open before it had its name, so a process that still uses it is seen now.
        used = _open_files() if found else set()
        for path, descriptor in found:
            status = os.fstat(descriptor)
            if (status.st_dev, status.st_ino) not in used:
                _remove(path, descriptor)


def _opened(place: Path, stack: contextlib.ExitStack) -> Iterator[tuple[Path, int]]:
    """This user's files of these names in `place`, each with a descriptor that `stack` closes."""
    try:
        names = sorted(filter(_LEFT.fullmatch, os.listdir(place)))  # noqa: PTH208 - the names are enough
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            descriptor = os.open(place / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            status = os.fstat(descriptor)
            own = status.st_uid == os.geteuid() and not status.st_mode & 0o077
            if own and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
                yield place / name, descriptor


def _open_files() -> set[tuple[int, int]]:
    """Device and inode of all that other processes have open, as far as this user may see it: of their own."""
    found = set()
    for process in Path("/proc").glob("[0-9]*/fd"):
        if process.parent.name == str(os.getpid()):
            continue
        with contextlib.suppress(OSError):
            for entry in process.iterdir():
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    found.add((status.st_dev, status.st_ino))
    return found


def _remove(path: Path, descriptor: int) -> None:
    """Remove `path`, unless another process sweeps it too, or something else is there by now."""
    with contextlib.suppress(OSError, MissingOnHost):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(path.lstat(), os.fstat(descriptor)):
            remove_tree(path)
