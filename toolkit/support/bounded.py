"""Work on what a stranger may have written: in a process of its own, with limits on its memory and its time."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import resource
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

_MEMORY = 256 << 20  # bytes, more than this process has
_SECONDS = 10


def bounded(work: Callable[[], str]) -> str:
    """The text that `work` returns.

    Raises what `work` raises, MemoryError if it needs more than 256 MiB, and TimeoutError after 10 s.
    """
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(work, sending), daemon=True)
    child.start()
    sending.close()
    try:
        if not receiving.poll(_SECONDS):
            raise TimeoutError
        result = receiving.recv()
    except EOFError:  # the kernel ended it
        raise MemoryError from None
    finally:
        receiving.close()
        child.kill()
        child.join()
    if isinstance(result, str):
        return result
    raise result


def _answer(work: Callable[[], str], sending: Connection) -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        result: str | Exception = work()
    except Exception as error:  # the parent raises it
        result = error
    try:
        sending.send(result)
    except (pickle.PicklingError, TypeError, AttributeError):
        sending.send(ValueError(str(result)))
