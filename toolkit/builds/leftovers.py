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
        used = _open_names() if found else set()
        for path, descriptor in found:
            if path.name not in used:
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


def _open_names() -> set[str]:
    """The names of all files that other processes have open, as far as this user may see it: of their own.

    By the links alone: a file on a server that does not answer must not block a build. A process in a container may see
    /tmp elsewhere, so that only the last part of a path says the same everywhere.
    """
    found = set()
    own = str(os.getpid())
    for process in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - the names are enough
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{process}/fd") if process != own else ():  # noqa: PTH208
                with contextlib.suppress(OSError):
                    found.add(os.readlink(f"/proc/{process}/fd/{number}").rpartition("/")[2])  # noqa: PTH115
    return found


def _remove(path: Path, descriptor: int) -> None:
    """Remove `path`, unless another process sweeps it too, or something else is there by now."""
    with contextlib.suppress(OSError, MissingOnHost):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(path.lstat(), os.fstat(descriptor)):
            remove_tree(path)
