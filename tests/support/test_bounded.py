"""Work in a process of its own."""

from __future__ import annotations

import threading
import time

import pytest

from toolkit.support import bounded as module
from toolkit.support.bounded import bounded


def test_text_comes_back_whole() -> None:
    assert len(bounded(lambda: "é" * 3_000_000)) == 3_000_000


def test_errors_are_raised_here() -> None:
    with pytest.raises(KeyError, match="x"):
        bounded(lambda: {"y": ""}["x"])
    with pytest.raises(MemoryError):
        bounded(lambda: "x" * (1 << 30))

    class OwnError(Exception):
        lock = threading.Lock()

        def __init__(self) -> None:
            super().__init__("of this function")
            self.here = threading.Lock()  # which cannot be sent

    def fails() -> str:
        raise OwnError

    with pytest.raises(ValueError, match="of this function"):
        bounded(fails)


def test_time_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 1)
    with pytest.raises(TimeoutError):
        bounded(lambda: str(time.sleep(60)))
