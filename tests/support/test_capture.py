"""What a program prints is read in bounded memory, and nothing holds up its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

import pytest

from toolkit.support.capture import Capture, capture_to_end, drain


def captured(script: str, seconds: float = 20) -> tuple[bool, str]:
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        capture = Capture(child.stdout)
        try:
            ended = capture_to_end(child, (capture,), (time.monotonic() + seconds).__float__)
            drain((capture,))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return ended, capture.text()


@pytest.fixture(params=["pidfd", "polling"], autouse=True)
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without file descriptors of processes."""
    if request.param == "polling":
        monkeypatch.delattr(os, "pidfd_open")


def test_short_output_is_complete() -> None:
    assert captured("echo one; echo two") == (True, "one\ntwo\n")
    assert captured(":") == (True, "")


def test_output_without_a_reader_does_not_block_the_program() -> None:
    ended, text = captured("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert (ended, len(text)) == (True, 3_000_012)


def test_long_output_keeps_its_first_and_last_part() -> None:
    ended, text = captured("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert ended
    assert text.startswith("first\n")
    assert text.endswith("x\nlast\n")
    assert len(text) < 5 << 20


def test_output_without_end_stops_at_the_deadline() -> None:
    started = time.monotonic()
    ended, text = captured("echo first; exec yes", 0.5)
    assert (ended, text[:8]) == (False, "first\ny\n")
    assert len(text) < 5 << 20
    assert time.monotonic() - started < 10


def test_process_that_outlives_the_program_holds_nothing_up() -> None:
    started = time.monotonic()
    assert captured("sleep 30 & echo done") == (True, "done\n")
    assert time.monotonic() - started < 10
