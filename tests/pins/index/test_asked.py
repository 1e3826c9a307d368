"""The times of questions: kept for a day, for each set of indexes."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from toolkit.pins.index.asked import asked_lately, note_asked
from toolkit.pins.index.uv import Uv
from toolkit.recipes.model import Index

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def uv(tmp_path: Path) -> Uv:
    return Uv("uv", tmp_path / "cache", tmp_path / "tmp")


def test_packages_that_were_noted_were_asked_for_lately(uv: Uv) -> None:
    note_asked(uv, (), ["numpy", "scipy"])
    note_asked(uv, (), ["pandas"])
    assert asked_lately(uv, (), ["numpy", "pandas", "scipy"])
    assert not asked_lately(uv, (), ["numpy", "xarray"])


def test_another_index_was_not_asked(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    note_asked(uv, (), ["numpy"])
    assert not asked_lately(uv, (Index("own", "https://index.example/simple"),), ["numpy"])
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mirror.example/simple")
    assert not asked_lately(uv, (), ["numpy"])


@pytest.mark.parametrize(("age", "lately"), [(80_000, True), (90_000, False), (-60, False)])
def test_question_counts_for_a_day(uv: Uv, age: int, lately: bool) -> None:
    note_asked(uv, (), ["numpy"])
    (file,) = uv.cache.glob("ctk-asked/*")
    file.write_text(json.dumps({"numpy": time.time() - age}))
    assert asked_lately(uv, (), ["numpy"]) is lately


@pytest.mark.parametrize("text", ["", "[1]", '{"numpy": null}', "{" * 9999, "\udcff"])
def test_damaged_file_says_nothing_and_is_replaced(uv: Uv, text: str) -> None:
    note_asked(uv, (), ["numpy"])
    (file,) = uv.cache.glob("ctk-asked/*")
    file.write_bytes(text.encode(errors="surrogateescape"))
    assert not asked_lately(uv, (), ["numpy"])
    note_asked(uv, (), ["scipy"])
    assert asked_lately(uv, (), ["scipy"])


def test_cache_that_cannot_be_written_is_no_error(uv: Uv) -> None:
    uv.cache.write_text("no directory")
    note_asked(uv, (), ["numpy"])
    assert not asked_lately(uv, (), ["numpy"])
