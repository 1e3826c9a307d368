"""Work in several threads: its results, its first failure, and how it ends."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from toolkit.support.parallel import Stopped, on_stop, parallel, wait


def test_results_are_in_the_order_of_the_items() -> None:
    def later(number: int) -> int:
        time.sleep(0.02 * (5 - number))
        return number * number

    assert parallel(later, range(5), 3) == [0, 1, 4, 9, 16]
    assert parallel(later, [], 3) == []


def test_first_failure_is_raised_and_ends_all_that_wait() -> None:
    begun: list[int] = []
    ended: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 1:
            raise ValueError("no")
        try:
            wait(60) if number == 0 else on_end_of_event()
        finally:
            ended.append(number)

    def on_end_of_event() -> None:
        event = threading.Event()
        with on_stop(event.set):
            event.wait(60)

    start = time.monotonic()
    with pytest.raises(ValueError, match="no"):
        parallel(work, [0, 2, 1, 3, 4], 3)
    assert time.monotonic() - start < 5
    assert sorted(ended) == [0, 2]
    assert sorted(begun) == [0, 1, 2], "nothing begins after the failure"


def test_what_begins_to_wait_after_the_end_does_not_wait() -> None:
    found: list[type[BaseException]] = []
    over = threading.Event()

    def work(number: int) -> None:
        if number:
            raise ValueError("no")
        over.wait(5)
        time.sleep(0.05)
        try:
            with on_stop(lambda: None):
                found.append(ValueError)
        except Stopped:
            found.append(Stopped)
        over.set()

    threading.Timer(0.1, over.set).start()
    with pytest.raises(ValueError, match="no"):
        parallel(work, [0, 1], 2)
    assert found == [Stopped]


def test_interruption_ends_all_threads_but_one_that_cannot_be_woken() -> None:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        parallel(lambda number: wait(60) if number else time.sleep(4), range(4), 4)
    assert time.monotonic() - start < 3


def test_main_thread_waits_as_it_does_without_threads() -> None:
    with on_stop(lambda: None):
        wait(0.01)
