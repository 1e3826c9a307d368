"""Programs whose output is a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from toolkit.support import terminal
from toolkit.support.errors import MissingOnHost
from toolkit.support.processes import stream

DRAW = r"printf '\r[= ] 1%%\r[==] 100%%\n'; stty size; tty -s && echo yes; printf 'last\377' >&2; exit 3"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_a_rewritten_line_is_a_line_each_time() -> None:
    lines, before = list[str](), descriptors()
    assert stream(["sh", "-c", f"exec 0<&1; {DRAW}"], lines.append, terminal=True) == 3
    assert lines == ["[= ] 1%", "[==] 100%", "24 80", "yes", "last\ufffd"]
    assert descriptors() == before


def test_nothing_is_lost_at_the_end() -> None:
    for _ in range(30):
        lines: list[str] = []
        assert stream(["sh", "-c", "seq 500; echo last"], lines.append, terminal=True) == 0
        assert lines == [*map(str, range(1, 501)), "last"]


def test_it_is_not_the_controlling_terminal() -> None:
    """It could send signals, and a program could ask there for a password."""
    lines: list[str] = []
    stream([sys.executable, "-c", "open('/dev/tty')"], lines.append, terminal=True)
    assert "No such device or address" in lines[-1]


def test_a_host_without_terminals_gives_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError("out of pty devices")

    monkeypatch.setattr(os, "openpty", none_left)
    assert terminal.open_terminal() is None
    lines: list[str] = []
    assert stream(["sh", "-c", "test -t 1 || echo pipe"], lines.append, terminal=True) == 0
    assert lines == ["pipe"]


def test_nothing_stays_open_after_an_error() -> None:
    before = descriptors()
    with pytest.raises(MissingOnHost):
        stream([str(Path("/no/such/program"))], print, terminal=True)

    def stop(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream(["sh", "-c", "echo one; exec sleep 60"], stop, terminal=True)
    assert descriptors() == before
