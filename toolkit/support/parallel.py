"""Work in several threads, all of which end at once if one of them fails or the command is interrupted."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

_SECONDS_TO_END = 1.0  # for what a thread removes when it is stopped


class Stopped(Exception):  # noqa: N818 - nothing is wrong with the work that is stopped
    """The other threads of the same work have ended, so this one ends, too."""


class _Group:
    """The threads of one piece of work. `ends` is what wakes those that wait for a server or a program."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._ends: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def stop(self) -> None:
        with self._lock:
            self.stopped.set()
            for end in self._ends:
                end()

    @contextlib.contextmanager
    def ending(self, end: Callable[[], object]) -> Iterator[None]:
        with self._lock:
            if self.stopped.is_set():
                raise Stopped
            self._ends.append(end)
        try:
            yield
        finally:
            with self._lock:
                self._ends.remove(end)


_thread = threading.local()


def parallel(work: Callable[[T], R], items: Iterable[T], at_once: int) -> list[R]:
    """What `work` returns for each of `items`, in their order. Raises what the first one that fails raises.

    Nothing waits for a thread that cannot be woken, such as one that writes to a slow disk: it ends with the process.
    """
    waiting: queue.SimpleQueue[tuple[int, T]] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()
    total = 0
    for item in items:
        waiting.put((total, item))
        total += 1
    group = _Group()

    def take() -> None:
        _thread.group = group
        with contextlib.suppress(queue.Empty):
            while not group.stopped.is_set():
                number, item = waiting.get_nowait()
                try:
                    answers.put((number, work(item), None))
                except BaseException as error:  # `parallel` raises it
                    answers.put((number, None, error))
                    group.stop()

    threads = [threading.Thread(target=take, daemon=True) for _ in range(min(at_once, total))]
    found: dict[int, R] = {}
    try:
        for thread in threads:
            thread.start()
        while len(found) < total:
            number, result, error = answers.get()
            if error is not None:
                raise error
            found[number] = result
    except BaseException:
        group.stop()
        end = time.monotonic() + _SECONDS_TO_END
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, end - time.monotonic()))
        raise
    return [found[number] for number in range(total)]


@contextlib.contextmanager
def on_stop(end: Callable[[], object]) -> Iterator[None]:
    """While the block waits for something in a thread of `parallel`, `end` ends the wait, from another thread.

    Raises Stopped if the work is stopped already. The main thread needs no `end`: a signal wakes it.
    """
    group: _Group | None = getattr(_thread, "group", None)
    with group.ending(end) if group is not None else contextlib.nullcontext():
        yield


def wait(seconds: float) -> None:
    """Sleep. Raises Stopped if the work of this thread is stopped meanwhile."""
    group: _Group | None = getattr(_thread, "group", None)
    if group is None:
        time.sleep(seconds)
    elif group.stopped.wait(seconds):
        raise Stopped
