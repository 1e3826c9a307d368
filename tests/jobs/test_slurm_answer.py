"""`sbatch --test-only`: its answer, and hosts without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from toolkit.jobs.model import Job
from toolkit.jobs.scripts import make_script
from toolkit.jobs.slurm_answer import ask_slurm, judge_answer, judge_limits
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

# Slurm 22.05.
STARTS = "sbatch: Job 7 to start at 2026-11-23T01:02:03 using 4 processors on nodes n1 in partition cpu\n"
REFUSED = "allocation failure: Requested node configuration is not available\n"


PARTITIONS = (
    "PartitionName=cpu Default=YES MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 Nodes=n[1-2] State=UP\n"
    "PartitionName=long Default=NO MaxNodes=1 MaxTime=7-00:00:00 MinNodes=0 Nodes=n1 State=UP\n"
)


@pytest.mark.parametrize(
    ("options", "message", "fix"),
    [
        (
            {"time": 3 * 86400},
            "partition cpu allows 24 hours, and the job asks for 3 days: job 7 will wait until it is cancelled",
            "scancel 7, then submit again. Nearest: --time 1-00:00:00, or --partition long",
        ),
        ({"time": 9 * 86400, "partition": "long"}, "partition long allows 7 days", "Nearest: --time 7-00:00:00"),
        ({"nodes": 2, "partition": "long"}, "partition long allows 1 node", "--partition cpu"),
    ],
)
def test_job_that_its_partition_never_starts_is_told(options: dict[str, Any], message: str, fix: str) -> None:
    (found,) = judge_limits(PARTITIONS, Job("x", "./x.sif", ("true",), **options), "7")
    assert (found.code, found.severity) == ("request-over-limit", Severity.WARNING)
    assert message in found.message
    assert fix in (found.fix or "")


def test_job_within_the_limits_of_a_partition_has_no_warning() -> None:
    for options in ({}, {"time": 86400}, {"time": 5 * 86400, "partition": "long"}, {"partition": "none"}):
        assert not judge_limits(PARTITIONS, Job("x", "./x.sif", ("true",), **options), "7")


def test_an_answer_that_names_when_and_where() -> None:
    found = judge_answer(STARTS, ok=True)
    assert (found.code, found.severity) == ("scheduler-accepts", Severity.OK)
    assert "at 2026-11-23T01:02:03 on n1" in found.message
    assert "neither time limits" in found.message


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (REFUSED, "Requested node configuration is not available"),
        ("sbatch: error: invalid partition specified: x\nallocation failure: Invalid partition name specified\n", "x"),
        ("", "it gives no reason"),
        (STARTS, "Job 7 to start"),
    ],
)
def test_an_answer_that_refuses(printed: str, said: str) -> None:
    found = judge_answer(printed, ok=False)
    assert (found.code, found.severity) == ("scheduler-refuses", Severity.WARNING)
    assert said in found.message
    assert "error:" not in found.message
    assert "allocation failure" not in found.message


def sbatch(directory: Path, printed: str, status: int) -> None:
    path = directory / "sbatch"
    path.write_text(
        f'#!/bin/sh\n[ "$2" = --test-only ] || exit 9\n[ -f "$3" ] || exit 8\necho \'{printed}\' >&2\nexit {status}\n'
    )
    path.chmod(0o755)


def test_a_host_is_asked_if_it_reaches_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = make_script(Job("x", "./x.sif", ("true",)), tmp_path / "x.sbatch")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    assert ask_slurm(script, tmp_path) is None
    sbatch(tmp_path, STARTS.strip(), 0)
    found = ask_slurm(script, tmp_path)
    assert found is not None
    assert found.severity is Severity.OK
    sbatch(tmp_path, "sbatch: fatal: Could not establish a configuration source", 1)
    assert ask_slurm(script, tmp_path) is None
    sbatch(tmp_path, STARTS.strip(), 0)
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "gone.conf"))
    assert ask_slurm(script, tmp_path) is None
    assert not (tmp_path / "x.sbatch").exists()
