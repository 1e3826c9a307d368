"""The door to Slurm, on a real one: submit, states, reasons, cancel. Its time limit is in test_signals.py."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.real.labs import eventually
from toolkit.scheduler.programs import Scheduler, cancel, query, submitted_job
from toolkit.scheduler.states import JobState, State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import PracticeCluster

SLURM = Scheduler.SLURM


@pytest.fixture
def directory(lab: PracticeCluster, ground: Path) -> Iterator[Path]:
    path = ground / f"slurm-{time.monotonic_ns()}"
    path.mkdir()
    subprocess.run(["chown", lab.user.name, path], check=True)
    yield path
    lab.user.run("scancel", "--me", cwd=path, env=lab.environment)


def send(lab: PracticeCluster, directory: Path, body: str, *options: str) -> str:
    script = directory / f"job-{len(list(directory.iterdir()))}.sh"
    script.write_text(f"#!/bin/bash\n{body}\n")
    printed = lab.user.run("sbatch", "--parsable", *options, script, cwd=directory, env=lab.environment).stdout
    return submitted_job(SLURM, printed)


def states(lab: PracticeCluster, job: str) -> tuple[JobState, ...]:
    return query(SLURM, [job], env={**lab.user.environment, **lab.environment})[job]


def wait_for(lab: PracticeCluster, job: str, *wanted: State, tasks: int = 1) -> tuple[JobState, ...]:
    def there() -> bool:
        found = states(lab, job)
        return len(found) == tasks and {state.state for state in found} <= set(wanted)

    eventually(there, f"job {job} to be {wanted}", 40)
    return states(lab, job)


def test_jobs_end_with_their_status(lab: PracticeCluster, directory: Path) -> None:
    good, bad = send(lab, directory, "true"), send(lab, directory, "exit 3")
    (state,) = wait_for(lab, good, State.COMPLETED)
    assert (state.exit_status, state.signal) == (0, None)
    assert state.nodes.startswith("n")
    (state,) = wait_for(lab, bad, State.FAILED)
    assert (state.exit_status, state.signal) == (3, None)


def test_job_is_seen_waiting_and_running_and_is_cancelled(lab: PracticeCluster, directory: Path) -> None:
    first = send(lab, directory, "sleep 60", "--nodes=4", "--exclusive")
    (state,) = wait_for(lab, first, State.RUNNING)
    assert state.nodes == "n[1-4]"
    second, held = send(lab, directory, "true"), send(lab, directory, "true", "--hold")
    wait_for(lab, second, State.PENDING)
    wait_for(lab, held, State.HELD)
    cancel(SLURM, [first, held], env={**lab.user.environment, **lab.environment})
    for job in (first, held):
        wait_for(lab, job, State.CANCELLED)
    wait_for(lab, second, State.COMPLETED)


def test_log_that_cannot_be_opened_is_the_reason(lab: PracticeCluster, directory: Path) -> None:
    job = send(lab, directory, "touch ran", "--output=missing/out.txt")
    (state,) = wait_for(lab, job, State.FAILED)
    assert (state.exit_status, state.signal) == (0, 53)
    assert "the directory of its log does not exist" in state.reason
    assert not (directory / "ran").exists()


def test_each_task_of_an_array_has_its_state(lab: PracticeCluster, directory: Path) -> None:
    job = send(lab, directory, "[ $SLURM_ARRAY_TASK_ID -ne 4 ]", "--array=0-4:2%2")
    found = {state.job: state.state for state in wait_for(lab, job, State.COMPLETED, State.FAILED, tasks=3)}
    assert found == {f"{job}_0": State.COMPLETED, f"{job}_2": State.COMPLETED, f"{job}_4": State.FAILED}


def test_job_that_slurm_does_not_know_is_gone(lab: PracticeCluster) -> None:
    (state,) = states(lab, "99999")
    assert state.state is State.GONE
