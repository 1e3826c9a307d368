"""What a process has found in the store counts as used for as long as the process lives: no pruning removes it.

What happens to it nevertheless, by hand or in a store of somebody else, is noticed: what was made from it is not kept.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.store.removing import identity
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

SECONDS_BETWEEN_USES = 600.0  # a sixth of what pruning spares
_thread: threading.Thread | None = None
_starting = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Use:
    """What tells an entry and its content from others in their places. `is_own`: its uses are noted in the store."""

    entry: tuple[int, int] | None
    content: tuple[int, int, int, int] | None
    path: Path
    is_own: bool

    def is_of(self, record: Path) -> bool:
        """Whether the entry is still the one that was used."""
        if self.entry is None or self.content is None:
            return False
        return identity(record) == self.entry and _stamp(self.path) == self.content


_used: dict[Path, _Use] = {}  # by their records


def keep_in_use(record: Path, content: Path, *, is_own: bool = True) -> None:
    """Note the use of an entry now, and again and again until this process ends. `record` is its `entry.json`.

    Pruning goes by it: where it cannot be noted, as in a read-only store or in that of somebody else, it is not. In any
    case, `forget_lost` and `require_used` look at the entry.
    """
    _used[record] = _Use(identity(record), _stamp(content), content, is_own)
    if is_own and _touch(record):
        _start()


def forget_lost() -> tuple[Path, ...]:
    """The records of entries that this process used and that are gone, or are others now; they are forgotten."""
    lost = _lost()
    for record in lost:
        _used.pop(record, None)
    return lost


def require_used(kind: str) -> None:
    """Raise ProgramFailed (`store-changed`) if an entry of `kind` that this process used is gone, or another one."""
    if lost := [record for record in _lost() if record.parent.parent.name == kind]:
        raise ProgramFailed(
            f"{_used[lost[0]].path} was removed or changed while it was used",
            fix="Build again when no other process writes to the store.",
            code="store-changed",
        )


def _lost() -> tuple[Path, ...]:
    return tuple(record for record, use in list(_used.items()) if not use.is_of(record))


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    """A file's identity, size and time of change. Not `st_ctime`: a hard link to a package changes it."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _start() -> None:
    global _thread
    if _thread is None or not _thread.is_alive():  # after a fork it is not
        with _starting:
            if _thread is None or not _thread.is_alive():
                _thread = threading.Thread(target=_go_on, daemon=True, name="ctk-store")
                _thread.start()


def _go_on() -> None:
    waiting = threading.Event()
    while not waiting.wait(SECONDS_BETWEEN_USES):
        for record, use in list(_used.items()):
            if use.is_own:
                _touch(record)


def _touch(record: Path) -> bool:
    try:
        os.utime(record, follow_symlinks=False)
    except OSError:
        return False
    return True
