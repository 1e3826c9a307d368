"""The door to the programs of a scheduler, with programs that print what the real ones print."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from toolkit.scheduler.programs import (
    Scheduler,
    belongs,
    cancel,
    host_scheduler,
    kind_of_pbs,
    no_programs,
    query,
    submit,
    submitted_job,
)
from toolkit.scheduler.states import State
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in front of PATH, for programs of one's own."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
    monkeypatch.delenv("SGE_ROOT", raising=False)
    return place


def write(place: Path, name: str, body: str) -> None:
    (place / name).write_text(f"#!/bin/sh\n{body}\n")
    (place / name).chmod(0o755)


@pytest.mark.parametrize(
    ("there", "scheduler"),
    [
        ({"sbatch", "qsub"}, Scheduler.SLURM),
        ({"qsub", "qconf"}, Scheduler.GRID_ENGINE),
        ({"qsub"}, Scheduler.OPENPBS),
        (set(), None),
    ],
)
def test_scheduler_of_a_host(there: set[str], scheduler: Scheduler | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGE_ROOT", raising=False)
    assert host_scheduler(lambda name: f"/usr/bin/{name}" if name in there else None) is scheduler


@pytest.mark.parametrize(
    ("version", "kind"),
    [("pbs_version = 23.06.06", Scheduler.OPENPBS), ("Version: 6.1.2\nCommit: x", Scheduler.TORQUE)],
)
def test_kind_of_pbs(version: str, kind: Scheduler) -> None:
    assert kind_of_pbs(version) is kind


def test_script_is_submitted_from_its_directory(programs: Path, tmp_path: Path) -> None:
    write(programs, "qsub", 'pwd >asked; echo "$@" >>asked; echo 12.pbs1')
    done = submit(Scheduler.OPENPBS, tmp_path / "x.pbs", directory=tmp_path, arguments=["-P", "group"])
    assert submitted_job(Scheduler.OPENPBS, done.stdout) == "12.pbs1"
    assert (tmp_path / "asked").read_text() == f"{tmp_path}\n-P group {tmp_path}/x.pbs\n"


@pytest.mark.parametrize(
    ("scheduler", "printed", "job"),
    [
        (Scheduler.SLURM, "12;cluster\n", "12"),
        (Scheduler.GRID_ENGINE, "12.1-5:1\n", "12"),
        (Scheduler.TORQUE, "12.head\n", "12.head"),
    ],
)
def test_number_of_a_submitted_job(scheduler: Scheduler, printed: str, job: str) -> None:
    assert submitted_job(scheduler, printed) == job
    with pytest.raises(ProgramFailed, match="printed no job ID"):
        submitted_job(scheduler, "?")


def test_states_of_slurm(programs: Path) -> None:
    write(
        programs,
        "scontrol",
        '[ "$4" = 1 ] && exec echo "JobId=1 JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0"; exit 1',
    )
    write(programs, "sacct", 'echo "$*" | grep -q jobs=2 && echo "2|TIMEOUT|0:0|None|n1"')
    found = query(Scheduler.SLURM, ["1", "2", "3"])
    assert {job: [state.state for state in states] for job, states in found.items()} == {
        "1": [State.FAILED],
        "2": [State.TIMED_OUT],
        "3": [State.GONE],
    }


def test_states_of_grid_engine(programs: Path) -> None:
    row = "      3 0.00000 lost       ada          Eqw   11/21/2026 03:08:49                                    1"
    reason = "error reason    1:          11/21/2026 03:08:50 [1:2]: error: no such directory"
    write(
        programs,
        "qstat",
        f"if [ \"$1\" = -j ]; then printf 'job_number: 3\\n{reason}\\n'; else echo '{row}'; fi",
    )
    write(programs, "qacct", "printf '=====\\njobnumber    4\\nfailed       0\\nexit_status  0\\n'")
    found = query(Scheduler.GRID_ENGINE, ["3", "4"])
    assert (found["3"][0].state, found["3"][0].reason) == (State.FAILED, "no such directory")
    assert found["4"][0].state is State.COMPLETED


def test_states_of_openpbs_without_a_history(programs: Path) -> None:
    write(programs, "qstat", '[ "$1" != -x ] || exit 1; echo \'{"Jobs": {"7.pbs1": {"job_state": "R"}}}\'')
    found = query(Scheduler.OPENPBS, ["7.pbs1"])
    assert found["7.pbs1"][0].state is State.RUNNING


def test_states_of_torque(programs: Path) -> None:
    write(programs, "qstat", "echo '<Data><Job><Job_Id>7.head</Job_Id><job_state>Q</job_state></Job></Data>'")
    assert query(Scheduler.TORQUE, ["7.head"])["7.head"][0].state is State.PENDING


def test_no_jobs_need_no_program() -> None:
    assert query(Scheduler.SLURM, []) == {}


@pytest.mark.parametrize(
    ("state", "job", "same"),
    [
        ("12", "12", True),
        ("12_3", "12", True),
        ("12_[1-3%1]", "12", True),
        ("12.1", "12", True),
        ("12.2-5:1", "12", True),
        ("121", "12", False),
        ("12[3].pbs1", "12[].pbs1", True),
        ("12[3].pbs1", "12.pbs1", False),
        ("13[3].pbs1", "12[].pbs1", False),
    ],
)
def test_task_belongs_to_its_array(state: str, job: str, same: bool) -> None:
    assert belongs(state, job) is same


def test_refused_cancellation_is_an_error(programs: Path, tmp_path: Path) -> None:
    write(programs, "scancel", f'echo "$@" >{tmp_path}/asked')
    cancel(Scheduler.SLURM, ["1", "2"])
    assert (tmp_path / "asked").read_text() == "1 2\n"
    write(programs, "qdel", "echo no such job >&2; exit 1")
    with pytest.raises(ProgramFailed, match="cancelling the job failed"):
        cancel(Scheduler.OPENPBS, ["1"])


def test_host_without_programs(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(programs))
    assert no_programs(Scheduler.GRID_ENGINE) is not None
    write(programs, "qsub", "")
    assert no_programs(Scheduler.GRID_ENGINE) is None
