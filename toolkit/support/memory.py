"""The memory that a program which reads what a stranger sends may take, and what it takes."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import ProgramFailed
from toolkit.support.files import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOOK_SECONDS = 0.2  # between two looks at what a program takes
_CEILING = 4 << 30  # bytes


def memory_ceiling() -> int:
    """The bytes that uv and git may take: 4 GiB, or half of the memory of a smaller host.

    A page without an end would fill the host. Without one, uv took up to 800 MB in 100 s: for airflow with its
    providers, vLLM, TensorFlow and 17 other projects, of which it tried and built old releases.
    """
    return min(_CEILING, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)


def memory_of(process: int) -> int:
    """The bytes that a process and its children take; 0 for one that has ended.

    Without the pages of files, which the kernel drops when others need memory. proc_pid_statm(5); where the kernel has
    no list of children (CONFIG_PROC_CHILDREN), the process alone.
    """
    found, waiting = 0, [str(process)]
    while waiting:
        directory = Path("/proc", waiting.pop())
        with contextlib.suppress(OSError):
            resident, shared = (directory / "statm").read_text().split()[1:3]
            found += (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
            for thread in (directory / "task").iterdir():
                waiting += (thread / "children").read_text().split()
    return found


@contextlib.contextmanager
def memory_limit(memory: float, process: int, program: str, kill: Callable[[], None]) -> Iterator[None]:
    """Call `kill` once a process and its children take more than `memory` bytes, and raise ProgramFailed then."""
    over, done = threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            if memory_of(process) > memory:
                over.set()
                kill()
                return

    if memory == math.inf:
        yield
        return
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    if over.is_set():
        raise ProgramFailed(
            f"{program} took more than {format_size(int(memory))} of memory and was stopped",
            fix="A server may have sent without an end: check the address of the index or the repository.",
            code="program-memory",
        )
