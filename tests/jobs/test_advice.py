"""Advice before a job is submitted."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.jobs.test_scripts import HOME, JOB
from toolkit.jobs.advice import advise, advise_on_owners, advise_on_values
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


@pytest.mark.parametrize(
    ("typed", "message", "fix"),
    [
        ({"mem": "16"}, "--mem 16 is 16 MiB of memory", "16 GiB is --mem 16G; if MiB are meant: --mem 16M"),
        ({"time": "4:00"}, "--time 4:00 is 4 minutes", "4 hours is --time 4:00:00"),
        ({"time": "1:30"}, "--time 1:30 is 1 minute and 30 seconds", "1 hour and 30 minutes is --time 1:30:00"),
        ({"time": "4"}, "--time 4 is 4 minutes", "4 hours is --time 4:00:00"),
        ({"array": "10"}, "--array 10 is one task, with the number 10", "10 tasks are --array 0-9"),
    ],
)
def test_a_value_in_another_unit_than_expected_is_said(typed: dict[str, str], message: str, fix: str) -> None:
    (found,) = advise_on_values(typed)
    assert (found.code, found.message, found.fix) == ("value-in-other-unit", message, fix)


def test_values_that_are_meant_so_are_passed() -> None:
    for mem in ("16G", "16M", "16000", "0", None):
        for time in ("4:00:00", "30", "30:00", "0", "1-2", "1-2:30", "UNLIMITED", None):
            assert advise_on_values({"mem": mem, "time": time, "array": "0-9", "nodes": 2}) == ()


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
