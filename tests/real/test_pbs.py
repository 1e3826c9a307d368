"""The door to PBS, on an emulation that does what a real OpenPBS was seen to do, and what Torque's sources say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.real.labs import eventually
from tests.real.pbs import Server, pbs_server
from toolkit.scheduler import pbs
from toolkit.scheduler.pbs_site import hosts_of, parse_vnodes
from toolkit.scheduler.programs import Scheduler, cancel, host_scheduler, query, submit, submitted_job
from toolkit.scheduler.states import JobState, State


@pytest.fixture(params=[Scheduler.OPENPBS, Scheduler.TORQUE])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    found = pbs_server(tmp_path / "pbs", request.param)
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return found


def send(server: Server, body: str, *options: str, status: int = 0) -> str:
    script = Path(f"job-{len(list(Path.cwd().iterdir()))}.sh")
    script.write_text(f"#!/bin/bash\n#PBS -N probe -j oe\n{body}")
    done = submit(server.scheduler, script, directory=Path.cwd(), arguments=options)
    assert done.returncode == status, done.stderr
    return submitted_job(server.scheduler, done.stdout) if status == 0 else done.stderr


def gpus(server: Server, count: int) -> tuple[str, str]:
    """The request of GPUs of one node."""
    return ("-l", f"nodes=1:ppn=1:gpus={count}" if server.scheduler is Scheduler.TORQUE else f"select=1:ngpus={count}")


def wait_for(server: Server, job: str, *wanted: State, tasks: int = 1) -> tuple[JobState, ...]:
    def there() -> bool:
        found = query(server.scheduler, [job])[job]
        return len(found) == tasks and {state.state for state in found} <= set(wanted)

    eventually(there, f"job {job} to be {wanted}", 40)
    return query(server.scheduler, [job])[job]


def test_jobs_end_with_their_status_and_begin_in_the_home_directory(server: Server) -> None:
    good, bad = send(server, 'pwd; echo "$PBS_O_WORKDIR $PBS_JOBNAME"\n'), send(server, "exit 3\n")
    (state,) = wait_for(server, good, State.COMPLETED)
    assert (state.exit_status, state.reason) == (0, "")
    output = Path(f"probe.o{good.partition('.')[0]}")
    assert output.read_text() == f"{os.environ['HOME']}\n{Path.cwd()} probe\n"
    assert output.stat().st_mode & 0o777 == 0o600
    (state,) = wait_for(server, bad, State.FAILED)
    assert state.exit_status == 3


def test_job_is_seen_waiting_and_running_and_is_cancelled(server: Server) -> None:
    first = send(server, "sleep 60\n", *gpus(server, 4))
    (state,) = wait_for(server, first, State.RUNNING)
    assert state.nodes == "pbs1"
    second, held = send(server, "true\n", *gpus(server, 1)), send(server, "true\n", "-h")
    (state,) = query(server.scheduler, [second])[second]
    assert state.state is State.PENDING
    if server.scheduler is Scheduler.OPENPBS:
        assert state.reason == "Insufficient amount of resource: ngpus"
    assert query(server.scheduler, [held])[held][0].state is State.HELD
    cancel(server.scheduler, [first, held])
    (state,) = wait_for(server, first, State.CANCELLED)
    assert state.exit_status == 271
    wait_for(server, second, State.COMPLETED)
    wait_for(server, held, State.CANCELLED)
    (server.place / "server/history").unlink()
    (state,) = query(server.scheduler, [second])[second]
    assert state.state is State.GONE


def test_log_that_cannot_be_copied_is_left_on_its_node_though_the_status_is_zero(
    server: Server, tmp_path: Path
) -> None:
    job = send(server, "echo words\n", "-o", f"{tmp_path}/missing/out.txt")
    (state,) = wait_for(server, job, State.COMPLETED)
    assert state.exit_status == 0
    if server.scheduler is Scheduler.OPENPBS:  # Torque does not say so anywhere
        assert "PBS could not copy its output back" in state.reason
    assert (server.place / f"server/undelivered/{job}.OU").read_text() == "words\n"


def test_time_limit_is_told_and_signals_the_script(server: Server) -> None:
    job = send(server, "trap 'sleep 0.3; echo stopped; exit 1' TERM\nsleep 60 & wait\n", "-l", "walltime=1")
    (state,) = wait_for(server, job, State.TIMED_OUT)
    assert state.exit_status == (-29 if server.scheduler is Scheduler.OPENPBS else -11)
    said = Path(f"probe.o{job.partition('.')[0]}").read_text()
    assert said == "stopped\n=>> PBS: job killed: walltime 2 exceeded limit 1\n"


def test_each_task_of_an_array_has_its_state(server: Server) -> None:
    torque = server.scheduler is Scheduler.TORQUE
    index, sign = ("PBS_ARRAYID", "-") if torque else ("PBS_ARRAY_INDEX", ".")
    option = ("-t", "1,3,5%2") if torque else ("-J", "1-5:2")
    job = send(server, f"[ ${index} -ne 5 ]\n", *option)
    number = job.partition("[")[0]
    found = {state.job: state.state for state in wait_for(server, job, State.COMPLETED, State.FAILED, tasks=3)}
    whole = {f"{number}[{task}].pbs1" for task in (1, 3)}
    assert found == {**dict.fromkeys(whole, State.COMPLETED), f"{number}[5].pbs1": State.FAILED}
    assert Path(f"probe.o{number}{sign}1").is_file()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-N", "a b"), "illegal -N value"),
        (("-q", "none"), "Unknown queue"),
        (("-l", "walltime=soon"), "illegal -l"),
        (("-t", "1-5:2"), ""),  # neither has it: no step in Torque, no -t in OpenPBS
    ],
)
def test_refusals_are_those_of_the_server(server: Server, options: tuple[str, ...], words: str) -> None:
    assert words in send(server, "true\n", *options, status=170 if words == "Unknown queue" else 2)


def test_nodes_are_read_and_the_host_is_recognised(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    torque = server.scheduler is Scheduler.TORQUE
    argv = [server.programs / "pbsnodes", *(("-x",) if torque else ("-a", "-v", "-F", "json"))]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    (node,) = pbs.parse_nodes_xml(printed) if torque else hosts_of(parse_vnodes(printed))
    assert (node.name, node.cpus, node.gpus, node.memory, node.usable) == ("pbs1", 8, 4, 64000, True)
    monkeypatch.setenv("PATH", str(server.programs))
    assert host_scheduler() is server.scheduler
