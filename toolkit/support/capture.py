"""Read what a program prints while it runs, in bounded memory: neither a pipe nor a disk fills up."""

from __future__ import annotations

import os
import select
import time
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

_HEAD = 64 << 10  # bytes of a stream that are kept, besides the last part
KEPT = 4 << 20
_CHUNK = 64 << 10
_MAX_POLL = 2**31 - 1  # ms, an int of C: poll(2)
_POLLING = 50.0  # ms, where the kernel does not tell the end of a process
_DRAIN_SECONDS = 1.0


class Capture:
    """The first and the last part of what comes through a pipe; what is dropped between them leaves a line's end.

    The last part has `kept` bytes at most.
    """

    def __init__(self, pipe: IO[bytes], kept: int = KEPT) -> None:
        self.descriptor = pipe.fileno()
        self._kept = kept
        self._head, self._tail = bytearray(), bytearray()
        self.dropped = False
        os.set_blocking(self.descriptor, False)

    def read(self) -> bool:
        """Take what is there now, a part of it if it is much. False at the end of the stream, and if nothing is there.

        Raises nothing: a pipe without data is no error.
        """
        try:
            data = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return False
        self.add(data)
        return bool(data)

    def add(self, data: bytes) -> None:
        room = _HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._kept:
            self._shorten()

    def recent(self) -> str:
        """The end of what has come so far, in which all of the last read is."""
        return bytes((self._tail or self._head)[-2 * _CHUNK :]).decode("utf-8", "replace")

    def text(self) -> str:
        """What was kept, as UTF-8."""
        if len(self._tail) > self._kept:
            self._shorten()
        middle = b"\n" if self.dropped else b""
        return (self._head + middle + self._tail).decode("utf-8", "replace")

    def _shorten(self) -> None:
        del self._tail[: -self._kept]
        self.dropped = True


def capture_to_end(child: subprocess.Popen[bytes], captures: Sequence[Capture], deadline: Callable[[], float]) -> bool:
    """Read until the child ends, or the monotonic clock reaches `deadline`; whether it ended.

    `deadline` is asked again whenever something was read: what the child prints may give it more time.

    A process that outlives the child and keeps its pipes holds nothing up.
    """
    poll = select.poll()
    by_descriptor = {capture.descriptor: capture for capture in captures}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    end = _end_of(child)
    if end is not None:
        poll.register(end, select.POLLIN)
    try:
        while True:
            patience = min(max(0.0, deadline() - time.monotonic()) * 1000, _MAX_POLL if end is not None else _POLLING)
            ready = [descriptor for descriptor, _ in poll.poll(patience)]
            for descriptor in ready:
                if descriptor in by_descriptor and not by_descriptor[descriptor].read():
                    poll.unregister(descriptor)
            if end in ready or (end is None and child.poll() is not None):
                return True
            if time.monotonic() >= deadline():
                return child.poll() is not None
    finally:
        if end is not None:
            os.close(end)


def drain(captures: Sequence[Capture]) -> None:
    """Read what a program that has ended left in its pipes."""
    deadline = time.monotonic() + _DRAIN_SECONDS
    for capture in captures:
        while capture.read() and time.monotonic() < deadline:
            pass


def _end_of(child: subprocess.Popen[bytes]) -> int | None:
    """A file descriptor that tells the end of a child (Linux 5.3)."""
    try:
        return os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # a Python built for older kernels, an older kernel, or a sandbox that forbids it
        return None
