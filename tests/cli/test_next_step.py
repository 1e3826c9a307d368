"""The next step that ctk suggests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.builds.record import Record, write_beside
from toolkit.cli.next_step import next_job
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ctk


def test_a_terminal_gets_a_next_step_and_a_pipe_does_not(ctk: Ctk, on_a_terminal: Callable[..., str]) -> None:
    assert "Next: ctk build keras-bert" in on_a_terminal("list", NO_COLOR="1")
    assert "Next:" not in ctk("list").stdout


def test_the_next_step_can_be_typed_as_it_stands(ctk: Ctk, on_a_terminal: Callable[..., str]) -> None:
    (ctk.directory / "-x.sif").touch()
    assert "Next: ctk check-gpu ./-x.sif\n" in ctk().stdout
    (ctk.directory / "my image.sif/.singularity.d").mkdir(parents=True)
    words = ("sbatch", "--image", "my image.sif", "--gpus", "0")
    assert "Next: sbatch my-image.sbatch\n" in on_a_terminal(*words, "--", "true", NO_COLOR="1")
    assert "Next: sbatch 'a b.sbatch'\n" in on_a_terminal(*words, "-o", "a b.sbatch", "--", "true", NO_COLOR="1")
    assert "Next: sbatch 'a b.sbatch'\n" in ctk().stdout
    assert "ctk run 'my image.sif' python train.py" in ctk("run", "my image.sif", status=2).stderr


@pytest.mark.parametrize(
    ("verdict", "following"),
    [
        (Verdict.GPU_READY, "ctk sbatch --job-name x --image x.sif python train.py"),
        (Verdict.CPU_ONLY, "ctk audit x.sif"),
        (Verdict.GPU_BROKEN, "ctk audit x.sif"),
        (Verdict.NO_FRAMEWORK, "ctk shell x.sif"),
        (None, "ctk shell x.sif"),  # not built by ctk: the audit says that it has no framework
    ],
)
def test_no_job_is_suggested_that_would_be_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict | None, following: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.sif/.singularity.d").mkdir(parents=True)
    if verdict is not None:
        write_beside(Path("x.sif"), Record("x.def", None, verdict=verdict))
    assert " ".join(next_job(Path("x.sif"))) == following
