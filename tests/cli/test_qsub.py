"""`ctk qsub` from its words to its file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.schemas import check_document, documents_in
from toolkit.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a training script and a sandbox-like image, where ctk runs on a host without any program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTK_HOME", str(tmp_path / "ctk"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("SGE_ROOT", raising=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "train.py").touch()
    (tmp_path / "trial.sif" / ".singularity.d").mkdir(parents=True)
    (tmp_path / "trial.sif/usr/bin").mkdir(parents=True)
    (tmp_path / "trial.sif/usr/bin/python").touch()
    return tmp_path


def ctk(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["ctk", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize(
    ("scheduler", "suffix", "line"),
    [("sge", "sge", "#$ -l gpu=1"), ("pbs", "pbs", "#PBS -l select=1:ncpus=1:ngpus=1"), ("torque", "pbs", ":gpus=1")],
)
def test_script_is_written_on_a_host_without_scheduler_and_runtime(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    scheduler: str,
    suffix: str,
    line: str,
) -> None:
    assert ctk(monkeypatch, "qsub", "--scheduler", scheduler, "-N", "x", "--gpus", "1", "--json") == 0
    (document,) = documents_in(capsys.readouterr().out)
    check_document(document)
    assert (document["scheduler"], document["script"], document["log"]) == (scheduler, f"x.{suffix}", "logs/x-ID.log")
    assert line in (directory / f"x.{suffix}").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scheduler", "sge", "--mem", "16G"), "-l h_vmem=16384M"),
        (("--scheduler", "torque", "--nodes", "2", "--gpus", "2"), "--request"),
        (("--scheduler", "pbs", "--gpus", "a100:1"), "--request"),
        (("--scheduler", "pbs", "--gpus", "1", "--group", "tga"), "--account tga"),
        (
            (
                "--scheduler",
                "slurm",
            ),
            "ctk sbatch",
        ),
        ((), "--scheduler sge"),
        (("--scheduler", "sge", "--gpus", "1", "--request", "-l gpu={gpus}"), "unknown field"),
        (("--scheduler", "sge", "--node-tmp", "--nodes", "2", "--request", "-l f={nodes}"), "--node-tmp"),
        (("--scheduler", "sge", "--directive=-v HF_TOKEN=hf_abcdefghijklmnop"), "secret"),
    ],
)
def test_refused_input_names_what_to_write_and_writes_nothing(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    before = sorted(directory.rglob("*"))
    assert ctk(monkeypatch, "qsub", "-N", "x", *words) == 2
    assert said in capsys.readouterr().err.replace("\n", " ")
    assert sorted(path for path in directory.rglob("*") if "ctk" not in path.parts[-1]) == before


def test_own_request_and_group_reach_script_and_submission(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qsub = directory / "bin" / "qsub"
    qsub.write_text('#!/bin/sh\nfor word; do printf "%s\\n" "$word"; done > arguments; echo 12\n')
    qsub.chmod(0o755)
    (directory / "bin" / "qconf").symlink_to(qsub)
    (directory / "bin" / "sh").symlink_to("/bin/sh")
    words = ("-N", "x", "--gpus", "4", "--nodes", "2", "--request", "-l node_f={nodes}", "--group", "tga-x", "--submit")
    assert ctk(monkeypatch, "qsub", *words) == 0
    text = (directory / "x.sge").read_text()
    assert "#$ -l node_f=2\n" in text
    assert "-l gpu" not in text
    assert (directory / "arguments").read_text().split() == ["-terse", "-b", "n", "-g", "tga-x", f"{directory}/x.sge"]
