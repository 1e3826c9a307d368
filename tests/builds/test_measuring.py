"""How far a program is, from the files that it writes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from toolkit.builds import measuring
from toolkit.builds.context import Listener
from toolkit.builds.measuring import bytes_in, measured, packed

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_packed_has_no_total(tmp_path: Path) -> None:
    (tmp_path / "bundle-temp-1").mkdir()
    assert packed(tmp_path) is None
    (tmp_path / "bundle-temp-1/squashfs-22").write_bytes(b"x" * 700)
    (tmp_path / "bundle-temp-1/other").write_bytes(b"x" * 9)
    (tmp_path / "squashfs-9").write_bytes(b"x" * 9)
    assert packed(tmp_path) == (700, 0)
    assert bytes_in(tmp_path) == 718


def test_it_is_looked_at_while_the_block_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_BETWEEN_LOOKS", 0.01)
    found, seen = iter([None, (1, 0), (2, 0)]), list[tuple[int, int]]()
    with measured(lambda: next(found, None), Listener(on_progress=lambda *sizes: seen.append(sizes))):
        deadline = time.monotonic() + 20
        while len(seen) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert seen == [(1, 0), (2, 0)]
    with pytest.raises(OSError, match="disk"), measured(lambda: None, Listener()):
        raise OSError("disk")
