"""What a process has found in the store counts as used for as long as the process lives: no pruning removes it."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from toolkit.store.removing import identity

if TYPE_CHECKING:
    from pathlib import Path

SECONDS_BETWEEN_USES = 600.0  # a sixth of what pruning spares
_used: dict[Path, tuple[int, int] | None] = {}  # records, each with what tells it from another one in its place
_thread: threading.Thread | None = None
_starting = threading.Lock()


def keep_in_use(record: Path) -> None:
    """Note the use of an entry now, and again and again until this process ends. `record` is its `entry.json`.

    Nothing depends on it but what pruning removes first: where it cannot be noted, as in a read-only store, it is not.
    """
    if _touch(record):
        _used[record] = identity(record)
        _start()


def forget_lost() -> tuple[Path, ...]:
    """The records of entries that this process used and that are gone, or are others now; they are forgotten."""
    lost = tuple(record for record, before in list(_used.items()) if before is None or identity(record) != before)
    for record in lost:
        _used.pop(record, None)
    return lost


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
        for record in list(_used):
            _touch(record)


def _touch(record: Path) -> bool:
    try:
        os.utime(record, follow_symlinks=False)
    except OSError:
        return False
    return True
