"""The door to Grid Engine, on a real one: submit, states, reasons, cancel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.grid_engine import RESOURCES, GridEngine, running
from tests.real.labs import eventually
from toolkit.scheduler import grid_engine
from toolkit.scheduler.programs import Scheduler, cancel, host_scheduler, query, submit, submitted_job
from toolkit.scheduler.states import JobState, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import User

SGE = Scheduler.GRID_ENGINE
HEAD = "#!/bin/bash\n#$ -cwd -j y -S /bin/bash -N probe\n"


@pytest.fixture(scope="module")
def cell(me: User, ground: Path) -> Iterator[GridEngine]:
    yield from running(me, ground / "grid-engine")


def send(cell: GridEngine, directory: Path, body: str, *options: str) -> str:
    script = directory / f"job-{len(list(directory.iterdir()))}.sh"
    script.write_text(HEAD + body)
    done = submit(SGE, script, directory=directory, arguments=options, env=cell.environment)
    assert done.ok, done.stderr
    return submitted_job(SGE, done.stdout)


def states(cell: GridEngine, job: str) -> tuple[JobState, ...]:
    return query(SGE, [job], env=cell.environment)[job]


def wait_for(cell: GridEngine, job: str, *wanted: State, tasks: int = 1, seconds: float = 40) -> tuple[JobState, ...]:
    """The states of the tasks of a job, once they are all among `wanted`."""

    def there() -> bool:
        found = states(cell, job)
        return len(found) == tasks and {state.state for state in found} <= set(wanted)

    eventually(there, f"job {job} to be {wanted}", seconds)
    return states(cell, job)


def test_cell_of_an_ordinary_user_runs_a_job(ordinary_user: User, ground: Path) -> None:
    place = ground / "grid-engine-of-user"
    place.mkdir()
    place.chmod(0o777)
    for cell in running(ordinary_user, place / "cell"):
        cell.run("qsub", "-cwd", "-sync", "y", "-b", "y", "-o", "out", "-j", "y", "/bin/hostname")
        assert (place / "cell/out").read_text()


def test_jobs_end_with_their_status(cell: GridEngine, tmp_path: Path) -> None:
    good, bad = send(cell, tmp_path, "true\n"), send(cell, tmp_path, "exit 3\n")
    (state,) = wait_for(cell, good, State.COMPLETED)
    assert (state.exit_status, state.reason, state.nodes) == (0, "", "localhost")
    (state,) = wait_for(cell, bad, State.FAILED)
    assert (state.exit_status, state.signal) == (3, None)
    assert "nonzero exit status" in state.reason


def test_job_is_seen_waiting_and_running_and_is_cancelled(cell: GridEngine, tmp_path: Path) -> None:
    first = send(cell, tmp_path, "sleep 60\n", "-l", "gpu=4")
    wait_for(cell, first, State.RUNNING)
    second = send(cell, tmp_path, "true\n", "-l", "gpu=1")
    held = send(cell, tmp_path, "true\n", "-h")
    assert [states(cell, job)[0].state for job in (second, held)] == [State.PENDING, State.HELD]
    cancel(SGE, [first, held], env=cell.environment)
    eventually(lambda: states(cell, first)[0].exit_status is not None, "the account of the job", 40)
    (state,) = states(cell, first)
    assert (state.state, state.signal, state.exit_status) == (State.CANCELLED, 9, 137)
    wait_for(cell, second, State.COMPLETED)
    (state,) = wait_for(cell, held, State.GONE)
    assert "no longer knows it" in state.reason


def test_log_that_cannot_be_opened_is_told_with_its_path(cell: GridEngine, tmp_path: Path) -> None:
    job = send(cell, tmp_path, "true\n", "-o", f"{tmp_path}/missing/out.txt")
    (state,) = wait_for(cell, job, State.FAILED)
    assert state.reported == "Eqw"
    assert state.reason == f'can\'t open output file "{tmp_path}/missing/out.txt": No such file or directory'
    (tmp_path / "missing").mkdir()
    cell.run("qmod", "-cj", job, status=1)  # which it returns also where it succeeds
    wait_for(cell, job, State.COMPLETED)


def test_time_limit_is_told_apart_from_a_failure(cell: GridEngine, tmp_path: Path) -> None:
    job = send(cell, tmp_path, "sleep 60\n", "-l", "h_rt=0:0:2")
    (state,) = wait_for(cell, job, State.TIMED_OUT)
    assert (state.signal, state.exit_status) == (9, 137)


def test_each_task_of_an_array_has_its_state(cell: GridEngine, tmp_path: Path) -> None:
    job = send(cell, tmp_path, "[ $SGE_TASK_ID -ne 5 ]\n", "-t", "1-5:2")
    found = {state.job: state.state for state in wait_for(cell, job, State.COMPLETED, State.FAILED, tasks=3)}
    assert found == {f"{job}.1": State.COMPLETED, f"{job}.3": State.COMPLETED, f"{job}.5": State.FAILED}


def test_request_is_read_back(cell: GridEngine, tmp_path: Path) -> None:
    job = send(cell, tmp_path, "true\n", "-h", "-l", "gpu=2,h_rt=0:10:0", "-pe", "smp", "3")
    details = grid_engine.parse_details(cell.run("qstat", "-j", job))[job]
    assert grid_engine.requested(details) == {"gpu": "2", "h_rt": "600", "pe": "smp 3"}
    assert details.fields["cwd"] == str(tmp_path)
    cancel(SGE, [job], env=cell.environment)


def test_unknown_resource_is_refused_with_a_reason(cell: GridEngine, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(HEAD)
    done = submit(SGE, script, directory=tmp_path, arguments=["-l", "nothing=1"], env=cell.environment)
    assert not done.ok
    assert 'unknown resource "nothing"' in done.stderr


def test_hosts_are_read(cell: GridEngine) -> None:
    (host,) = grid_engine.parse_qhost(cell.run("qhost", "-F", "-q"))
    assert (host.name, host.gpus, host.usable, host.partitions) == ("localhost", 4, True, ("all.q", "short.q"))
    assert host.cpus > 0
    assert host.memory > 0
    assert set(RESOURCES) <= {line.split()[0] for line in cell.run("qconf", "-sc").splitlines() if line.strip()}


def test_host_has_grid_engine_if_there_is_no_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("qsub", "qconf"):
        (tmp_path / name).symlink_to(Path("/usr/bin") / name)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert host_scheduler() is SGE
