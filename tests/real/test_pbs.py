"""The door to PBS, on an emulation of OpenPBS that does what a real server was seen to do."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.labs import eventually
from toolkit.scheduler import pbs
from toolkit.scheduler.programs import Scheduler, cancel, host_scheduler, query, submit, submitted_job
from toolkit.scheduler.states import JobState, State

PBS = Scheduler.OPENPBS
EMULATION = Path(__file__).resolve().parent.parent / "emulated_pbs.py"


@dataclass(frozen=True)
class Server:
    """An emulated server: the directory of its programs, and the variables that lead to it."""

    programs: Path
    place: Path
    environment: dict[str, str | None]

    def ctk_environment(self) -> dict[str, str]:
        return {name: value for name, value in self.environment.items() if value is not None}


def pbs_server(place: Path, *, history: bool = True) -> Server:
    """A new server in the directory `place`, which is also the home of its jobs."""
    programs = place / "bin"
    programs.mkdir(parents=True)
    for name in ("qsub", "qstat", "qdel", "pbsnodes"):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(EMULATION))} {name} "$@"\n')
        program.chmod(0o755)
    (place / "server").mkdir()
    if history:
        (place / "server/history").touch()
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(place), "EMULATED_PBS": f"{place}/server"}
    return Server(programs, place, environment)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    found = pbs_server(tmp_path / "pbs")
    for name, value in found.ctk_environment().items():
        monkeypatch.setenv(name, value)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return found


def send(body: str, *options: str, status: int = 0) -> str:
    script = Path(f"job-{len(list(Path.cwd().iterdir()))}.sh")
    script.write_text(f"#!/bin/bash\n#PBS -N probe -j oe\n{body}")
    done = submit(PBS, script, directory=Path.cwd(), arguments=options)
    assert done.returncode == status, done.stderr
    return submitted_job(PBS, done.stdout) if status == 0 else done.stderr


def wait_for(job: str, *wanted: State, tasks: int = 1) -> tuple[JobState, ...]:
    def there() -> bool:
        found = query(PBS, [job])[job]
        return len(found) == tasks and {state.state for state in found} <= set(wanted)

    eventually(there, f"job {job} to be {wanted}", 40)
    return query(PBS, [job])[job]


@pytest.mark.usefixtures("server")
def test_jobs_end_with_their_status_and_begin_in_the_home_directory() -> None:
    good, bad = send('pwd; echo "$PBS_O_WORKDIR $PBS_JOBNAME"\n'), send("exit 3\n")
    (state,) = wait_for(good, State.COMPLETED)
    assert (state.exit_status, state.reason) == (0, "")
    output = Path(f"probe.o{good.partition('.')[0]}")
    assert output.read_text() == f"{os.environ['HOME']}\n{Path.cwd()} probe\n"
    assert output.stat().st_mode & 0o777 == 0o600
    (state,) = wait_for(bad, State.FAILED)
    assert state.exit_status == 3


def test_job_is_seen_waiting_and_running_and_is_cancelled(server: Server) -> None:
    first = send("sleep 60\n", "-l", "select=1:ncpus=1:ngpus=4")
    wait_for(first, State.RUNNING)
    second, held = send("true\n", "-l", "select=1:ncpus=1:ngpus=1"), send("true\n", "-h")
    (state,) = query(PBS, [second])[second]
    assert (state.state, state.reason) == (State.PENDING, "Insufficient amount of resource: ngpus")
    assert query(PBS, [held])[held][0].state is State.HELD
    cancel(PBS, [first, held])
    (state,) = wait_for(first, State.CANCELLED)
    assert state.exit_status == 271
    wait_for(second, State.COMPLETED)
    wait_for(held, State.CANCELLED)
    (server.place / "server/history").unlink()
    (state,) = query(PBS, [second])[second]
    assert state.state is State.GONE


def test_log_that_cannot_be_copied_is_told_though_the_status_is_zero(server: Server, tmp_path: Path) -> None:
    job = send("echo words\n", "-o", f"{tmp_path}/missing/out.txt")
    (state,) = wait_for(job, State.COMPLETED)
    assert state.exit_status == 0
    assert "PBS could not copy its output back" in state.reason
    assert (server.place / f"server/undelivered/{job}.OU").read_text() == "words\n"


@pytest.mark.usefixtures("server")
def test_time_limit_is_told_and_signals_the_script() -> None:
    job = send("trap 'echo stopped; exit 1' TERM\nsleep 60 & wait\n", "-l", "walltime=1")
    (state,) = wait_for(job, State.TIMED_OUT)
    assert state.exit_status == -29
    said = Path(f"probe.o{job.partition('.')[0]}").read_text()
    assert said == "stopped\n=>> PBS: job killed: walltime 2 exceeded limit 1\n"


@pytest.mark.usefixtures("server")
def test_each_task_of_an_array_has_its_state() -> None:
    job = send("[ $PBS_ARRAY_INDEX -ne 5 ]\n", "-J", "1-5:2")
    number = job.partition("[")[0]
    found = {state.job: state.state for state in wait_for(job, State.COMPLETED, State.FAILED, tasks=3)}
    whole = {f"{number}[{task}].pbs1" for task in (1, 3)}
    assert found == {**dict.fromkeys(whole, State.COMPLETED), f"{number}[5].pbs1": State.FAILED}
    assert Path(f"probe.o{number}.1").is_file()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("options", "words"),
    [(("-N", "a/b"), "illegal -N value"), (("-q", "none"), "Unknown queue"), (("-l", "walltime=soon"), "illegal -l")],
)
def test_refusals_are_those_of_the_server(options: tuple[str, ...], words: str) -> None:
    assert words in send("true\n", *options, status=170 if words == "Unknown queue" else 2)


def test_nodes_are_read_and_the_host_is_recognised(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = [server.programs / "pbsnodes", "-a", "-F", "json"]
    (node,) = pbs.parse_nodes_json(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    assert (node.name, node.cpus, node.gpus, node.usable) == ("pbs1", 8, 4, True)
    monkeypatch.setenv("PATH", str(server.programs))
    assert host_scheduler() is PBS
