"""The record of an image: kept, read back, and believed only where it belongs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import request, sandbox_of
from toolkit.builds.record import Record, RecordedBase, read_record, record_beside, write_beside
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def test_a_record_speaks_of_its_own_directory_only(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    write_beside(made, Record("recipe:mine"))
    assert read_record(made) == Record("recipe:mine")
    made.rename(here / "kept")
    (here / "made/.singularity.d").mkdir(parents=True)
    assert read_record(made) is None
    with pytest.raises(WrongInput, match="exists and was not built by ctk"):
        request("mine", output=made, sandbox=True)


def test_a_pipe_in_the_place_of_a_record_holds_nobody_up(here: Path) -> None:
    os.mkfifo(record_beside(here / "sb"))
    assert read_record(here / "sb") is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "other/1", "target": "x"}', '{"schema": "ctk.image/1", "target": 3}', "\xff"]
)
def test_what_is_no_record_is_none(here: Path, text: str) -> None:
    record_beside(here / "sb").write_text(text, encoding="latin-1")
    assert read_record(here / "sb") is None
    assert read_record(here / "none.sif") is None
    assert read_record(here / "base.sif") is None


def test_a_record_is_read_back(here: Path) -> None:
    record_beside(here / "sb").write_text(Record("recipe:日本", RecordedBase("b")).as_text(), encoding="utf-8")
    assert read_record(here / "sb") == Record("recipe:日本", RecordedBase("b"))
