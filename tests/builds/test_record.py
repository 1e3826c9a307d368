"""The record of an image: kept, read back, and believed only where it belongs."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import request, sandbox_of
from toolkit.builds.record import Record, RecordedBase, Tools, read_record, record_beside, write_beside
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Verdict

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


def test_whole_record_is_read_as_it_was_written(here: Path) -> None:
    record = Record(
        "recipe:mine", RecordedBase("b", "h.example/b:1", "sha256:00", "[b]\n"), Verdict.CPU_ONLY, ("a-code",), False,
        {"base": "x"}, {"apt": "y"}, ("ctk-layer-1", "ctk-layer-2"), 'base = "b"\n', "# lock\n",
        Tools("0.9", "apptainer 1.4.5", "uv 1.2", "4.5.1"),
    )  # fmt: skip
    write_beside(here / "sb", record)
    assert read_record(here / "sb") == record
    assert (record.recipe_name, replace(record, target="sandbox:sb#0").recipe_name) == ("mine", None)


@pytest.mark.parametrize(
    ("target", "now"), [("recipe:mine", "recipe:mine"), ("definition:{here}/k.def", "definition:k.def#{hashed}")]
)
def test_record_of_the_first_form_counts_as_ctks_and_is_not_up_to_date(here: Path, target: str, now: str) -> None:
    earlier = {
        "schema": "ctk.image/" + "1", "target": target.format(here=here), "base": "debian-12", "verdict": "gpu-ready",
        "findings": ["a-code"], "ctk": "0.0.9", "changed": True, "inputs": {"base": "x"}, "made_from": {"apt": "y"},
    }  # fmt: skip
    record_beside(here / "sb").write_text(json.dumps(earlier))
    hashed = hashlib.sha256(f"{here}/k.def".encode()).hexdigest()[:16]
    assert read_record(here / "sb") == Record(
        now.format(hashed=hashed), RecordedBase("debian-12"), Verdict.GPU_READY, ("a-code",), changed=True,
        made_from={"apt": "y"}, tools=Tools("0.0.9"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "damaged",
    [{"base": 3}, {"base": {}}, {"tools": None}, {"layers": "x"}, {"recipe": 1, "lock": []}, {"inputs": 3}],
)
def test_record_with_a_damaged_key_is_read_without_it(here: Path, damaged: dict[str, object]) -> None:
    record_beside(here / "sb").write_text(json.dumps({**Record("recipe:mine").as_document(), **damaged}))
    assert replace(read_record(here / "sb") or Record(""), tools=Tools()) == Record("recipe:mine")
