"""What `ctk build` says at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.execute import Built
from toolkit.builds.record import Record
from toolkit.cli.build_report import Outcome, _say_built, failed, print_outcomes, short
from toolkit.cli.documents.images import built_image
from toolkit.cli.progress import StepTime
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    import pytest

from tests.schemas import check_document

STEPS = [StepTime("packages", 0, cached=True), StepTime("writing the image", 1.25)]


def test_report_has_steps_and_what_came_from_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    built = Built(Path("x.sif"), Path("x.sif.build.log"), 3.2, 4096, Record("recipe:x"), ())
    _say_built(built, STEPS, verbose=True)
    shown = capsys.readouterr().out
    assert "Steps:\nstep\ttime\npackages\tcached\nwriting the image\t1.2 s\n" in shown
    assert "From the store: packages.\n" in shown
    assert "Built x.sif in 3.2 s, 4" in shown
    _say_built(built, STEPS, verbose=False)
    assert "Steps:" not in capsys.readouterr().out, "each was printed when it ended"


def test_several_targets_are_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    record = Record("recipe:a")
    steps = [(step.name, step.seconds, step.cached) for step in STEPS]
    document = built_image(Path("a.sif"), Path("a.log"), record, 1, None, built=True, steps=steps)
    error = failed("b", ProgramFailed("it failed at https://ann:S3CRET@index.example", fix="Fix it."), 61.2)
    assert "S3CRET" not in capsys.readouterr().err
    assert error.seconds == 61.2
    print_outcomes([Outcome("a", 0, "built", document=document), error], json=True)
    shown = json.loads(capsys.readouterr().out)
    check_document(shown)
    assert [build["exit_status"] for build in shown["builds"]] == [0, 4]
    assert shown["builds"][0]["build"]["steps"][0] == {"name": "packages", "seconds": 0, "cached": True}
    assert shown["builds"][1]["build"] is None
    assert "S3CRET" not in json.dumps(shown)


def test_several_targets_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_outcomes([Outcome("a", 0, "up to date"), Outcome("b", 1, "built, cpu-only", 61.2)], json=False)
    assert capsys.readouterr().out == "\ntarget\tresult\ttime\na\tup to date\t0.0 s\nb\tbuilt, cpu-only\t1 m 1 s\n"


def test_a_path_outside_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sb").mkdir()
    assert [short(path) for path in (tmp_path / "sb", tmp_path / "x.sif", Path("/x.sif"))] == [
        "./sb",
        "x.sif",
        "/x.sif",
    ]
