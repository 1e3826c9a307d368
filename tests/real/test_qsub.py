"""Scripts of `ctk qsub` on a real Grid Engine and on the emulations of OpenPBS and Torque, in a real image."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.real import printing
from tests.real.grid_engine import GridEngine, running
from tests.real.labs import eventually
from tests.real.pbs import pbs_server
from tests.tokens import without_token
from toolkit.scheduler import grid_engine
from toolkit.scheduler.programs import Scheduler, cancel, query
from toolkit.scheduler.states import JobState, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import User

SGE, PBS, TORQUE = Scheduler.GRID_ENGINE, Scheduler.OPENPBS, Scheduler.TORQUE
FINAL = [state for state in State if state.is_final and state is not State.GONE]


@dataclass(frozen=True)
class Site:
    """A scheduler, the user who submits, the directory of the jobs and their image."""

    scheduler: Scheduler
    user: User
    directory: Path
    environment: dict[str, str]
    image: Path

    def write(self, name: str, *words: str, status: int = 0) -> str:
        """Write and submit a script; the number of the job, or what ctk said."""
        command = ("qsub", "-N", name, "--image", str(self.image), "--submit", *words)
        done = self.user.ctk(*command, cwd=self.directory, env=self.environment, status=status)
        match = re.search(r"Submitted as job (\S+);", done.stdout)
        return match[1] if match else done.stdout + done.stderr

    def states(self, job: str) -> tuple[JobState, ...]:
        return query(self.scheduler, [job], env={**self.user.environment, **self.environment})[job]

    def ended(self, job: str, tasks: int = 1, seconds: float = 60) -> tuple[JobState, ...]:
        """The states of the tasks of a job, when all have ended and the scheduler's account is there."""

        def there() -> bool:
            found = self.states(job)
            return len(found) == tasks and all(state.state in FINAL for state in found)

        eventually(there, f"job {job} to end", seconds)
        return self.states(job)

    def log(self, stem: str) -> str:
        path = self.directory / "logs" / f"{stem}.log"
        return without_token(path.read_text()) if path.exists() else ""

    def running(self, stem: str) -> None:
        eventually(lambda: "begun" in self.log(stem), f"{stem} to begin", 40)

    def cancel(self, job: str) -> None:
        cancel(self.scheduler, [job], env={**self.user.environment, **self.environment})


@pytest.fixture(scope="module")
def cell(me: User, ground: Path) -> Iterator[GridEngine]:
    yield from running(me, ground / "grid-engine-of-scripts")


@pytest.fixture(params=[SGE, PBS, TORQUE])
def site(request: pytest.FixtureRequest, me: User, tmp_path: Path, tiny_image: Path) -> Site:
    directory = tmp_path / "work"
    directory.mkdir()
    if request.param is SGE:
        cell = request.getfixturevalue("cell")
        programs = tmp_path / "bin"
        programs.mkdir()
        for name in ("qsub", "qstat", "qdel", "qconf", "qacct"):
            (programs / name).symlink_to(f"/usr/bin/{name}")
        environment = {**cell.environment, "PATH": f"{programs}:{me.environment['PATH']}"}
    else:
        environment = pbs_server(tmp_path / "pbs", request.param).environment
    return Site(request.param, me, directory, environment, tiny_image)


def number(job: str) -> str:
    return re.split(r"[.\[]", job)[0]


def test_log_and_exit_status_of_a_job_in_a_directory_without_logs(site: Site) -> None:
    job = site.write("first", "--gpus", "0", "--", "/bin/sh", "-c", "echo begun; exit 7")
    (state,) = site.ended(job)
    assert (state.state, state.exit_status) == (State.FAILED, 7)
    text = site.log(f"first-{number(job)}")
    assert text.startswith(f"ctk: job {number(job)} of ")
    assert "\nbegun\n" in text
    assert "ended with status 7\n" in text
    assert not list(site.directory.glob("*.log")), "it is in logs/"


def test_each_task_of_an_array_has_its_log(site: Site) -> None:
    variable = {SGE: "SGE_TASK_ID", PBS: "PBS_ARRAY_INDEX", TORQUE: "PBS_ARRAYID"}[site.scheduler]
    line = f"echo task ${variable}; exit ${variable}"
    job = site.write("sweep", "--gpus", "0", "--array", "1-5:2%2", "--shell", line)
    assert sorted(state.exit_status or 0 for state in site.ended(job, tasks=3)) == [1, 3, 5]
    for task in (1, 3, 5):
        assert f"\ntask {task}\n" in site.log(f"sweep-{number(job)}_{task}")


# Reads files that it has not read before while it saves. Without the image it gets an error, or a bus error.
SAVING = """
import glob, signal, sys, time
files = glob.glob("/usr/lib/python3*/**/*.py", recursive=True)
def save(number, frame):
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        open(files.pop(), "rb").read()
        time.sleep(0.02)
    sys.exit(print("saved") or 3)
signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGUSR1, save)
print("begun")
while True:
    time.sleep(0.1)
"""


def test_program_reads_its_image_while_it_saves_at_a_signal_of_the_scheduler(site: Site, small_python: Path) -> None:
    site = replace(site, image=small_python)
    limit = ["--directive=-l s_rt=0:0:3"] if site.scheduler is SGE else []
    for round_ in range(int(os.environ.get("CTK_SAVES", "1"))):
        name = f"save{round_}"
        job = site.write(name, "--gpus", "0", *limit, "--", "python3", "-c", SAVING)
        site.running(f"{name}-{number(job)}")
        if site.scheduler is not SGE:
            site.cancel(job)
        site.ended(job)
        log = site.log(f"{name}-{number(job)}")
        assert "saved\n" in log, log
        assert "ended with status 3\n" in log
        assert str(small_python) not in Path("/proc/mounts").read_text()


def test_time_limit_and_sigkill_leave_what_was_printed_before(site: Site, base_image: Path) -> None:
    site = replace(site, image=base_image)
    printing.write_programs(site.directory)
    words = ("--gpus", "0", printing.OPTION, "--shell")
    job = site.write("limit", "--time", "0:0:5", *words, f"{printing.LINE}; sleep 60")
    # As the kernel ends a job for its memory.
    killed = site.write("killed", *words, f"{printing.LINE}; sleep 2; kill -s KILL 0")
    (state,) = site.ended(job)
    assert state.state is State.TIMED_OUT
    text = site.log(f"limit-{number(job)}")
    assert printing.are_in(text), text
    (state,) = site.ended(killed)
    assert state.state is (State.CANCELLED if site.scheduler is SGE else State.FAILED)  # which it cannot tell apart
    text_of_killed = site.log(f"killed-{number(killed)}")
    assert printing.are_in(text_of_killed), text_of_killed
    if site.scheduler is not SGE:  # what PBS itself says is where the log says
        (name,) = re.findall(r"what PBS itself says comes to (\S+) when", text)
        assert "walltime" in (site.directory / name).read_text()


def test_cancelled_job_is_cancelled_and_its_log_is_there(site: Site, base_image: Path) -> None:
    site = replace(site, image=base_image)
    printing.write_programs(site.directory)
    line = f"trap 'echo saved; exit 3' TERM; {printing.LINE}; while :; do sleep 0.1; done"
    job = site.write("cancel", "--gpus", "0", "--node-tmp", printing.OPTION, "--shell", line)
    # It is in the log while the programs run, and nothing of it is taken back.
    eventually(lambda: printing.are_in(site.log(f"cancel-{number(job)}")), "what the programs print")
    site.cancel(job)
    (state,) = site.ended(job)
    assert state.state is State.CANCELLED
    if site.scheduler is not SGE:  # Grid Engine sends SIGKILL
        assert "saved\n" in site.log(f"cancel-{number(job)}")


def test_results_variables_threads_and_temporary_files(site: Site) -> None:
    line = 'echo "threads $OMP_NUM_THREADS word $WORD"; test -d "$TMPDIR" && : > "$CTK_RESULTS/made"'
    words = ("--gpus", "0", "--cpus-per-task", "3", "--results", "--node-tmp", "--env", "WORD", "--shell", line)
    site.environment["WORD"] = "passed"
    job = site.write("results", *words)
    (state,) = site.ended(job)
    assert state.exit_status == 0, site.log(f"results-{number(job)}")
    assert "threads 3 word passed\n" in site.log(f"results-{number(job)}")
    assert (site.directory / f"results/results-{number(job)}/made").exists()


@pytest.mark.parametrize("status", [99, 100])
def test_status_that_grid_engine_takes_for_an_order_ends_the_job(site: Site, status: int) -> None:
    job = site.write("order", "--gpus", "0", "--shell", f"exit {status}")
    (state,) = site.ended(job)
    assert state.exit_status == (1 if site.scheduler is SGE else status)
    assert f"ended with status {status}\n" in site.log(f"order-{number(job)}")


def test_refused_request_writes_nothing(site: Site) -> None:
    said = site.write("bad", "--gpus", "a100:1", "--", "/bin/true", status=2)
    assert "--request" in said
    assert list(site.directory.iterdir()) == []


def test_what_the_scheduler_refuses_is_shown_and_the_script_kept(site: Site) -> None:
    said = site.write("queue", "--gpus", "0", "--queue", "nope", "--", "/bin/true", status=4)
    assert "nope" in said or "Unknown queue" in said
    assert [path.suffix for path in site.directory.iterdir()] == [".sge" if site.scheduler is SGE else ".pbs"]


@settings(max_examples=8, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    gpus=st.integers(0, 4),
    cores=st.integers(1, 8),
    processes=st.integers(1, 2),
    seconds=st.integers(1, 10**6),
    short=st.booleans(),
)
def test_grid_engine_understands_what_was_asked(
    cell: GridEngine,
    me: User,
    ground: Path,
    tiny_image: Path,
    gpus: int,
    cores: int,
    processes: int,
    seconds: int,
    short: bool,
) -> None:
    directory = ground / "understood"
    directory.mkdir(exist_ok=True)
    site = Site(SGE, me, directory, cell.environment, tiny_image)
    words = ["--gpus", str(gpus), "--cpus-per-task", str(cores), "--ntasks-per-node", str(processes)]
    words += ["--time", f"0:0:{seconds}", *(["--queue", "short.q"] if short else [])]
    job = site.write(
        "asked", *words, "--force", "--no-gpu-gate", "--directive=-h", "--scheduler", "sge", "--", "/bin/true"
    )
    details = grid_engine.parse_details(cell.run("qstat", "-j", job))[job]
    slots = cores * processes
    expected = {"h_rt": str(seconds)} | ({"gpu": str(gpus)} if gpus else {})
    expected |= {"pe": f"smp {slots}"} if slots > 1 else {}
    assert grid_engine.requested(details) == expected
    assert details.fields.get("hard_queue_list") == ("short.q" if short else None)
    assert details.fields["job_name"] == "asked"
    assert details.fields["cwd"] == str(directory)
    site.cancel(job)


@pytest.mark.parametrize("scheduler", [PBS, TORQUE])
@settings(max_examples=5, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    nodes=st.integers(1, 2),
    gpus=st.integers(0, 4),
    cores=st.integers(1, 4),
    processes=st.integers(1, 2),
    minutes=st.integers(1, 10**4),
)
def test_pbs_understands_what_was_asked(
    me: User,
    ground: Path,
    tiny_image: Path,
    scheduler: Scheduler,
    nodes: int,
    gpus: int,
    cores: int,
    processes: int,
    minutes: int,
) -> None:
    gpus = 0 if scheduler is TORQUE and nodes > 1 else gpus * nodes  # which Torque cannot express
    place = ground / f"understood-{time.monotonic_ns()}"
    server = pbs_server(place / "server", scheduler, nodes=("n1", "n2"))
    site = Site(scheduler, me, place, server.environment, tiny_image)
    words = ["--gpus", str(gpus), "--cpus-per-task", str(cores), "--ntasks-per-node", str(processes)]
    words += ["--nodes", str(nodes), "--time", str(minutes), "--queue", "gpuq", "--account", "lab42", "--directive=-h"]
    job = site.write("asked", *words, "--no-gpu-gate", "--", "/bin/true")
    option = ("-x",) if scheduler is TORQUE else ("-f", "-F", "json")
    printed = me.run("qstat", *option, job, cwd=place, env=server.environment).stdout
    if scheduler is TORQUE:
        (found,) = ElementTree.fromstring(printed).iter("Job")  # noqa: S314 - of our own program
        shown = {part.tag: part.text for part in found if not len(part)}
        resources = {part.tag: part.text for part in found.find("Resource_List") or ()}
        expected = {"nodes": f"{nodes}:ppn={processes * cores}{f':gpus={gpus}' if gpus else ''}", "nodect": str(nodes)}
    else:
        shown = json.loads(printed)["Jobs"][job]
        resources = {name: str(value) for name, value in shown["Resource_List"].items()}
        expected = {"nodect": str(nodes), "ncpus": str(nodes * processes * cores), "ngpus": str(gpus)}
        expected |= {"mpiprocs": str(nodes * processes)} if nodes * processes > 1 else {}
    hours, minute = divmod(minutes, 60)
    expected |= {"walltime": f"{hours}:{minute:02}:00"}
    assert {name: resources.get(name) for name in expected} == expected
    assert (shown["Job_Name"], shown["queue"], shown["Account_Name"]) == ("asked", "gpuq", "lab42")
    assert shown["job_state"] == "H"
    site.cancel(job)
