"""Submission: what sbatch answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.jobs.test_scripts import JOB
from toolkit.jobs.dialects.pbs import OPENPBS
from toolkit.jobs.scripts import make_script
from toolkit.jobs.submission import submit
from toolkit.support.errors import MissingOnHost, ProgramFailed


def scheduler(directory: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = directory / "sbatch"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    monkeypatch.delenv("SLURM_CONF", raising=False)


def test_a_submission_has_the_number_that_slurm_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler(tmp_path, 'echo "$1 $2" > said; echo "42;alpha"', monkeypatch)
    submission = submit(make_script(JOB, tmp_path / "x.sbatch"), tmp_path)
    assert submission.job_id == "42"
    assert (tmp_path / "said").read_text() == f"--parsable {tmp_path}/x.sbatch\n"


def test_what_slurm_refuses_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler(tmp_path, "echo 'sbatch: error: invalid partition specified: nope' >&2; exit 1", monkeypatch)
    with pytest.raises(ProgramFailed) as refusal:
        submit(make_script(JOB, tmp_path / "x.sbatch"), tmp_path)
    assert refusal.value.last_lines == ("sbatch: error: invalid partition specified: nope",)


@pytest.mark.parametrize(
    "said",
    ["sbatch: fatal: Could not establish a configuration source", "sbatch: error: Unable to contact slurm controller"],
)
def test_a_client_without_a_cluster_is_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    scheduler(tmp_path, f"echo '{said}' >&2; exit 1", monkeypatch)
    with pytest.raises(MissingOnHost) as missing:
        submit(make_script(JOB, tmp_path / "x.sbatch"), tmp_path)
    assert "ctk lab up" in (missing.value.fix or "")


def test_a_host_without_sbatch_is_told_of_the_practice_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingOnHost) as missing:
        submit(make_script(JOB, tmp_path / "x.sbatch"), tmp_path)
    assert "ctk lab up" in (missing.value.fix or "")


@pytest.mark.parametrize(("where", "typed"), [("sub/x.sbatch", "sub/x.sbatch"), ("my x.sbatch", "'my x.sbatch'")])
def test_the_command_for_the_login_node_names_the_script_as_it_lies_here(
    monkeypatch: pytest.MonkeyPatch, where: str, typed: str
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingOnHost) as missing:
        submit(make_script(JOB, Path(where)), Path.cwd())
    assert missing.value.message.startswith(f"{where} was written")
    assert (missing.value.fix or "").endswith(f"login node: sbatch {typed}")


def test_settings_of_a_cluster_that_is_gone_are_noticed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler(tmp_path, "sleep 60", monkeypatch)
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "gone.conf"))
    with pytest.raises(MissingOnHost, match=r"gone\.conf"):
        submit(make_script(JOB, tmp_path / "x.sbatch"), tmp_path)


def test_values_that_qsub_of_openpbs_changes_are_given_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, body in (
        ("qstat", "echo pbs_version = 23.06.06"),
        ("qsub", f'echo "$A $B" > {tmp_path}/said; echo 7.pbs1'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    for name, value in (("PATH", f"{tmp_path}:/usr/bin:/bin"), ("A", "it's"), ("B", "plain")):
        monkeypatch.setenv(name, value)
    script = make_script(replace(JOB, inherited=("A", "B")), tmp_path / "x.pbs", OPENPBS)
    assert submit(script, tmp_path).job_id == "7.pbs1"
    assert (tmp_path / "said").read_text() == "ctk-base64:aXQncw== plain\n"
