"""Signals of a real Slurm reach the program of a job, whatever tracks its processes, and nothing is left running.

A random share of {programs} x {layouts} x {events} runs on each cluster, all its jobs at once. `make soak` runs all.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real import printing
from tests.real.clusters import KILL_WAIT, site, tracking_of_sites
from tests.real.jobs import Jobs
from tests.real.labs import eventually
from toolkit.scheduler.programs import Scheduler, query
from toolkit.scheduler.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import PracticeCluster, User

PROGRAM = Path(__file__).parents[1] / "data" / "under_signals.py"
GATED = ("--gpus", "1", "--gpu-monitor")  # with the GPU gate, and the monitor beside the program
BEHAVIOURS = ("save", "late", "ignore", "fork", "fork-ignore")
LAYOUTS = {"one": ("--gpus", "0"), "many": ("--gpus", "0", "--nodes", "2", "--ntasks-per-node", "2"), "gpu": GATED}
EVENTS = {
    "cancelled": (),
    "limit": ("--time", "1"),
    "requeued": (),
    "warned": ("--time", "2", "--directive=--signal=USR1@30"),
    "interrupted": (),
}
STATES = {"cancelled": "CANCELLED", "limit": "TIMEOUT", "warned": "FAILED", "interrupted": "FAILED"}
SLURM_SAYS = {"cancelled": "CANCELLED AT", "limit": "DUE TO TIME LIMIT", "requeued": "DUE TO JOB REQUEUE"}
# In every run: a checkpoint at each of the three ends that Slurm sets, and Slurm's own words in the log.
ALWAYS = [
    ("save", "one", "limit"),
    ("save", "many", "cancelled"),
    ("save", "one", "requeued"),
    ("fork-ignore", "one", "cancelled"),
]


@dataclass(frozen=True)
class Case:
    """One job: what its program does, in how many tasks, and what happens to it."""

    behaviour: str
    layout: str
    event: str

    @property
    def name(self) -> str:
        return f"{self.behaviour}-{self.layout}-{self.event}"

    @property
    def ranks(self) -> int:
        return 4 if self.layout == "many" else 1

    @property
    def killed(self) -> bool:
        """Whether only SIGKILL ends it: it ignores what comes before."""
        return self.behaviour == "ignore"

    @property
    def may_be_killed(self) -> bool:
        """Whether Slurm may kill the script: a child of a task that ignores signals keeps srun waiting until then.

        After a mere warning that is at the time limit.
        """
        events = ("cancelled", "limit", "warned")
        return self.behaviour == "fork-ignore" and self.layout == "many" and self.event in events

    @property
    def expected_signal(self) -> str:
        return {"warned": "SIGUSR1", "interrupted": "SIGINT"}.get(self.event, "SIGTERM")


# On the lab, which alone has GPUs: a warning before the limit, and the limit.
GATES = [Case("save", "gpu", "warned"), Case("save", "gpu", "limit"), Case("fork-ignore", "gpu", "cancelled")]


def cases() -> list[Case]:
    """The share of this run: CTK_SIGNAL_CASES of them for each cluster, chosen by CTK_SIGNAL_SEED."""
    everything = [
        Case(*chosen)
        for chosen in itertools.product(BEHAVIOURS, ("one", "many"), EVENTS)
        # Nothing ends a program that ignores a mere warning but its time limit, which is another event.
        if not (chosen[0] == "ignore" and chosen[2] in ("warned", "interrupted"))
    ]
    count = min(int(os.environ.get("CTK_SIGNAL_CASES", "8")), len(everything))
    chosen = [Case(*always) for always in ALWAYS]
    others = [case for case in everything if case not in chosen]
    return chosen + random.Random(int(os.environ.get("CTK_SIGNAL_SEED", "1"))).sample(others, count - len(chosen))  # noqa: S311


class Trial:
    """One case on one cluster."""

    def __init__(self, jobs: Jobs, case: Case) -> None:
        self.jobs, self.case = jobs, case
        command = ("python3", str(jobs.directory / PROGRAM.name), case.behaviour, case.name)
        jobs.write(case.name, *LAYOUTS[case.layout], *EVENTS[case.event], "--", *command)
        self.job = jobs.submit(case.name)

    @property
    def notes(self) -> list[str]:
        """What the ranks said, one text each."""
        return [path.read_text() for path in self.jobs.directory.glob(f"{self.case.name}-[0-9]")]

    def begun(self) -> bool:
        return len([text for text in self.notes if "begun" in text]) == self.case.ranks

    def disturb(self) -> None:
        """Let the event happen; the time limit comes by itself."""
        if self.case.event == "cancelled":
            self.jobs.run("scancel", self.job)
        elif self.case.event == "requeued":
            self.jobs.run("scontrol", "requeue", self.job)
        elif self.case.event == "interrupted":
            self.jobs.run("scancel", "--batch", "-s", "INT", self.job)

    def check(self) -> None:
        state = self.jobs.finish(self.job, seconds=240)
        eventually(lambda: not self._processes(), f"the processes of {self.case.name} to end", KILL_WAIT + 30)
        log = self.jobs.log(f"{self.case.name}-{self.job}")
        shown = f"{self.case.name} of {self.jobs.lab.environment}: {state}\n{log}"
        environment = {**self.jobs.lab.user.environment, **self.jobs.lab.environment}
        (seen,) = query(Scheduler.SLURM, [self.job], env=environment)[self.job]
        assert seen.reported == state, shown
        assert state != "TIMEOUT" or seen.state is State.TIMED_OUT
        if state == "TIMEOUT" and self.case.may_be_killed:
            assert SLURM_SAYS["limit"] in log, shown
        else:
            assert state == STATES.get(self.case.event, "COMPLETED"), shown
        assert SLURM_SAYS.get(self.case.event, "") in log, shown
        for text in self.notes:
            lines = iter(log.splitlines())
            assert all(line in lines for line in text.splitlines()), f"{text}\nis not all, in this order, in\n{shown}"
            if not self.case.killed:
                assert f"got {self.case.expected_signal}" in text, shown
                assert "saved" in text, shown
        if self.case.event == "requeued":
            assert log.index("run 1 on") < log.index("DUE TO JOB REQUEUE") < log.index("run 2 on"), shown
            assert log.count("again") == self.case.ranks, shown
            assert "ended with status 0" in log, shown
        elif not self.case.killed:
            status = self.jobs.show(self.job, "ExitCode")
            assert status == "3:0" or (self.case.may_be_killed and status == "0:9"), shown
            assert status == "0:9" or "ended with status 3" in log, shown

    def _processes(self) -> list[str]:
        done = subprocess.run(
            ["pgrep", "-af", f"{self.jobs.directory}.* {self.case.name}$"], capture_output=True, text=True, check=False
        )
        return done.stdout.splitlines()


class Printed:
    """Programs that only print, in a job that Slurm ends: what they printed is in the log while they run."""

    def __init__(self, jobs: Jobs, event: str) -> None:
        self.jobs, self.event = jobs, event
        words = {"memory": ("--mem", "300M"), "limit": ("--time", "1")}.get(event, ())
        line = printing.GROWING if event == "memory" else f"{printing.LINE}; wait"
        jobs.write(event, "--gpus", "0", *words, printing.OPTION, "--shell", line)
        self.job = jobs.submit(event)

    def failure(self) -> str | None:
        """What was not as it should be."""
        try:
            eventually(lambda: printing.are_in(self.log), f"what the job prints ({self.event})", 400)
            if self.event == "cancelled":
                self.jobs.run("scancel", self.job)
            state = self.jobs.finish(self.job, seconds=240)
        except AssertionError as error:
            return f"{error}\n{self.log}"
        ends = {"cancelled": ("CANCELLED",), "limit": ("TIMEOUT",), "memory": ("OUT_OF_MEMORY", "FAILED")}[self.event]
        return None if state in ends and printing.are_in(self.log) else f"{self.event}: {state}\n{self.log}"

    @property
    def log(self) -> str:
        return self.jobs.log(f"{self.event}-{self.job}")


@pytest.fixture(scope="module")
def clusters(lab: PracticeCluster, ordinary_user: User, ground: Path) -> Iterator[dict[str, PracticeCluster]]:
    """The lab, which tracks by linuxproc; one as sites have it; one that tracks by process group."""
    with site(ground, "pgid", ordinary_user) as by_group:
        if tracking_of_sites() == "pgid":
            yield {"linuxproc": lab, "pgid": by_group}
            return
        with site(ground, "cgroup", ordinary_user) as by_cgroup:
            yield {"linuxproc": lab, "cgroup": by_cgroup, "pgid": by_group}


def test_signals_reach_the_program_and_nothing_is_left(
    clusters: dict[str, PracticeCluster], ground: Path, base_image: Path
) -> None:
    trials: list[Trial] = []
    printed: list[Printed] = []
    for tracking, cluster in clusters.items():
        directory = ground / f"signals-{tracking}-{time.monotonic_ns()}"
        directory.mkdir()
        (directory / PROGRAM.name).write_text(PROGRAM.read_text())
        subprocess.run(["chown", "-R", cluster.user.name, str(directory)], check=True)
        jobs = Jobs(cluster, directory, base_image)
        trials += [Trial(jobs, case) for case in (*cases(), *(GATES if tracking == "linuxproc" else ()))]
        printing.write_programs(directory)
        printed += [Printed(jobs, event) for event in ("limit", "cancelled")]
        # Process groups alone limit no memory.
        printed += [Printed(jobs, "memory")] if tracking != "pgid" else []
    with ThreadPoolExecutor(len(trials) + len(printed)) as pool:
        of_printed = pool.map(Printed.failure, printed)
        failures = [failure for failure in (*pool.map(_failure, trials), *of_printed) if failure]
    assert not failures, "\n\n".join([f"{len(failures)} of {len(trials) + len(printed)}", *failures])


def test_the_next_job_removes_what_a_killed_one_left_on_the_node(
    clusters: dict[str, PracticeCluster], ground: Path, base_image: Path
) -> None:
    """Not the directory of a job that runs, however its processes are tracked."""
    line = (
        'trap "" TERM; echo made > "$TMPDIR/data"; echo "$TMPDIR" > "$1"; while [ "$1" != third ]; do sleep 0.2; done'
    )
    command = ("--gpus", "0", "--node-tmp", "--time", "5", "--", "sh", "-c", line, "sh")
    for tracking, cluster in clusters.items():
        directory = ground / f"node-tmp-{tracking}-{time.monotonic_ns()}"
        (directory / "local").mkdir(parents=True)
        subprocess.run(["chown", "-R", cluster.user.name, str(directory)], check=True)
        jobs = Jobs(cluster, directory, base_image)
        numbers = {}
        for name in ("first", "second"):
            jobs.write(name, *command, name)
            numbers[name] = jobs.submit(name, f"--export=ALL,TMPDIR={directory}/local", "--nodelist=n1")
            eventually((directory / name).exists, f"{name} to begin on {tracking}")
        places = {name: Path((directory / name).read_text().strip()) for name in numbers}
        jobs.run("scancel", "--signal=KILL", "--full", numbers["first"])
        jobs.finish(numbers["first"])
        assert (places["first"] / "data").exists(), tracking
        jobs.write("third", *command, "third")
        third = jobs.submit("third", f"--export=ALL,TMPDIR={directory}/local", "--nodelist=n1")
        assert jobs.finish(third) == "COMPLETED", jobs.log(f"third-{third}")
        eventually(lambda left=places["first"]: not left.exists(), f"{tracking}: the directory to be removed")  # type: ignore[misc]
        assert (places["second"] / "data").exists(), tracking
        jobs.run("scancel", "--signal=KILL", "--full", numbers["second"])
        jobs.finish(numbers["second"])


def _failure(trial: Trial) -> str | None:
    """What was not as it should be; all the others are run to their end, too."""
    try:
        eventually(trial.begun, f"{trial.case.name} to begin", 400)
        trial.disturb()
        trial.check()
    except AssertionError as error:
        return str(error)
    return None
