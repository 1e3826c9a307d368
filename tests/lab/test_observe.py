"""What is read of a lab's finished jobs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from toolkit.lab.observe import finished_jobs

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.lab.registry import Lab

LINE = (
    "JobId=4 UserId=ada(1001) GroupId=ada(1001) Name=a JobState=COMPLETED Partition=cpu TimeLimit=60 "
    "StartTime=2026-11-21T05:18:09 EndTime=2026-11-21T05:18:11 NodeList=n1 NodeCnt=1 ProcCnt=1 WorkDir=/home/ada "
    "ReservationName= Tres=cpu=1 Account= QOS= WcKey= Cluster=unknown SubmitTime=2026-11-21T05:18:07 "
    "EligibleTime=2026-11-21T05:18:09 DerivedExitCode=0:0 ExitCode=0:0 "
)


def lab_with(path: Path) -> Lab:
    return cast("Lab", SimpleNamespace(place=SimpleNamespace(finished_jobs=path)))


def test_finished_jobs_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    path.write_text(f"{LINE}\nthe rest of a name\n{LINE.replace('JobId=4', 'JobId=5')}\n")
    assert [job.job for job in finished_jobs(lab_with(path))] == ["4", "5"]


def test_lab_without_a_finished_job_has_no_file(tmp_path: Path) -> None:
    assert finished_jobs(lab_with(tmp_path / "none")) == ()
