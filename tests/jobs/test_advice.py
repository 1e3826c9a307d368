"""Advice before a job is submitted."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.jobs.test_scripts import HOME, JOB
from toolkit.jobs.advice import advise, advise_on_owners
from toolkit.jobs.model import Directive
from toolkit.scheduler.values import Gpus


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


def test_what_another_user_wrote_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.toml"
    path.touch()
    assert advise_on_owners([path, tmp_path / "missing"]) == ()
    monkeypatch.setattr("toolkit.jobs.advice.is_trusted", lambda _: False)
    (found,) = advise_on_owners([path, tmp_path / "missing"])
    assert found.code == "job-input-of-another-user"
    assert str(path) in found.message
