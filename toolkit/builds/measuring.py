"""How far a program is that does not tell it: its files are looked at while it runs."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.builds.context import Listener

_BETWEEN_LOOKS = 0.5  # seconds


@contextlib.contextmanager
def measured(look: Callable[[], tuple[int, int] | None], listener: Listener) -> Iterator[None]:
    """While the block runs, report what `look` finds: the bytes that are done, and those of all, 0 if not known."""
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(_BETWEEN_LOOKS):
            found = look()
            if found is not None:
                listener.on_progress(*found)

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join(1)


def packed(directory: Path) -> tuple[int, int] | None:
    """The bytes that the runtime has packed so far, whose temporary directory is `directory`; None if it does not pack.

    Their total is not known before the end. Apptainer 1.4.5 does not show what mksquashfs prints, and lets it write to
    `bundle-temp-NUMBER/squashfs-NUMBER` (internal/pkg/build/assemblers/sif.go, pkg/build/types/bundle.go).
    """
    sizes = []
    with contextlib.suppress(OSError):  # directories may be removed while they are listed
        for path in directory.glob("bundle-temp-*/squashfs-*"):
            with contextlib.suppress(OSError):
                sizes.append(path.stat().st_size)
    return (sum(sizes), 0) if sum(sizes) else None


def bytes_in(directory: Path) -> int:
    """The bytes of all files below `directory`, which may change."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(parent, name).lstat().st_size
    return total
