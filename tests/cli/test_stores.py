"""What a user is told about shared stores, once in each command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.cli import stores
from toolkit.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_it_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(stores, "_told", set())
    store = Store(tmp_path / "own", (tmp_path / "none",))
    for _ in range(2):
        assert [finding.code for finding in stores.tell_unused(store)] == ["store-not-used"], "for each JSON document"
        stores.tell_once("an entry is not used")
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("is not used: No such file or directory [store-not-used]") == 1
    assert told.count("Warning: an entry is not used") == 1
