"""The script's file, its submission, and what is said about jobs that are probably not meant."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from toolkit.jobs.advice import advise
from toolkit.jobs.model import Directive, Job
from toolkit.jobs.scripts import make_script, untouched_job, write_script
from toolkit.jobs.submission import submit
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import MissingOnHost, ProgramFailed, WrongInput

JOB = Job("x", "./trial.sif", ("python", "train.py"), gpus=Gpus(1))


def test_ctk_replaces_its_own_script_of_the_same_job(tmp_path: Path) -> None:
    path = tmp_path / "x.sbatch"
    write_script(make_script(JOB, path))
    newer = make_script(dataclasses.replace(JOB, time=60), path)
    write_script(newer)
    assert path.read_text() == newer.text
    assert untouched_job(newer.text) == "x"


def test_a_script_that_a_user_changed_or_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.sbatch"
    script = make_script(JOB, path)
    for text in (script.text.replace("train.py", "my.py"), script.text + "echo\n", "#!/bin/bash\n", "\udcff"):
        path.write_text(text, errors="surrogateescape")
        with pytest.raises(WrongInput, match="by hand"):
            write_script(script)
        assert path.read_text(errors="surrogateescape") == text
    write_script(script, force=True)
    assert path.read_text() == script.text


def test_the_script_of_another_job_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.sbatch"
    write_script(make_script(dataclasses.replace(JOB, name="other"), path))
    with pytest.raises(WrongInput, match="of the job other"):
        write_script(make_script(JOB, path))


def test_a_directory_is_no_file_for_a_script(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="is a directory"):
        write_script(make_script(JOB, tmp_path))


def test_a_pipe_is_no_file_for_a_script_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for force in (False, True):
        with pytest.raises(WrongInput, match="neither a file nor a directory"):
            write_script(make_script(JOB, tmp_path / "pipe"), force=force)


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


HOME = Path("/home/user/work")


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({}, set()),
        ({"gpus": None}, {"no-gpu-asked-for"}),
        ({"gpus": Gpus(0)}, set()),
        ({"gpus": None, "directives": (Directive("gres", "gpu:1"),)}, set()),
        ({"nodes": 2, "tasks_per_node": 4}, {"several-tasks"}),
        ({"command": ("python3.11", "missing.py")}, {"script-not-here"}),
        ({"command": ("python", "-c", "x.py")}, set()),
        ({"command": ("python", "/opt/in/image.py")}, set()),
        ({"binds": ("/missing:/data",)}, {"bind-not-here"}),
        ({"command": ("prog", "--rank=$SLURM_PROCID")}, {"variable-not-expanded"}),
        ({"command": ("sh", "-c", "echo $SLURM_PROCID")}, set()),
        ({"command": ("perl", "-e", "print $x, $1")}, set()),
        ({"inherited": ("HERE",)}, set()),
        ({"inherited": ("HF_TOKEN",)}, {"variable-not-set"}),
        ({"env_file": "./secrets"}, {"secrets-in-file"}),
        ({"image": "/tmp/trial.sif"}, {"folder-not-shared"}),
    ],
)
def test_advice(change: dict[str, object], codes: set[str]) -> None:
    job = dataclasses.replace(JOB, **change)  # type: ignore[arg-type]
    findings = advise(job, HOME, lambda path: "missing" not in str(path), {"HERE"})
    assert {finding.code for finding in findings} == codes


def test_a_directory_that_other_nodes_do_not_see_is_named_once() -> None:
    findings = advise(JOB, Path("/tmp/work"), lambda _: True, {})
    assert [finding.code for finding in findings] == ["folder-not-shared"]
