"""What a lab is doing: its nodes, its queue, and the jobs that have finished."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from toolkit.scheduler.environment import clean_environment
from toolkit.support.processes import run

if TYPE_CHECKING:
    from toolkit.lab.registry import Lab

_TIMEOUT = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Node:
    """A node, as reported by the controller.

    `state` is Slurm's state in lower case (`idle`, `mixed`, `allocated`, `down+not_responding`, ...);
    `slurmd_started` is when its daemon started, by its own clock, None if it never did.
    """

    name: str
    state: str
    cpus: int
    cpus_used: int
    gpus: int
    gpus_used: int
    reason: str
    slurmd_started: datetime | None

    @property
    def is_down(self) -> bool:
        """Whether the controller has marked the node as down, and requeues its jobs."""
        return "down" in self.state.split("+")

    @property
    def responds(self) -> bool:
        return not {"not_responding", "down", "unknown"} & set(self.state.split("+"))


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that waits or runs. `job` is its number (`12`, `12_3`); `where` its nodes, or in brackets why it waits."""

    job: str
    name: str
    partition: str
    state: str
    elapsed: str
    where: str


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has ended, or one run of it: a job that was run again after its node died has several.

    `job` is its number as users know it (`12`, `12_3` of an array), `number` its own in Slurm. A job whose log could
    not be opened has exit status 0 and signal 53 (Slurm's ExitCode=0:53). Times are local.
    """

    job: str
    number: int
    name: str
    user: str
    partition: str
    state: str
    exit_status: int
    signal: int
    nodes: str
    submitted: datetime | None
    started: datetime | None
    ended: datetime | None
    directory: str


def nodes(lab: Lab) -> tuple[Node, ...]:
    """The nodes of a lab, in their order; empty while its controller gives no answer."""
    done = run(
        ["scontrol", "show", "node", "--details", "--oneliner"],
        env=clean_environment(lab.environment()),
        timeout=_TIMEOUT,
    )
    found = {node.name: node for line in done.stdout.splitlines() if (node := parse_node(line)) is not None}
    return tuple(found[name] for name in lab.plan.node_names if name in found)


def parse_node(line: str) -> Node | None:
    """A line of `scontrol show node --details --oneliner`; None for another line."""
    values = dict(re.findall(r"(\w+)=(\S*)", line.partition(" Reason=")[0]))
    if "NodeName" not in values or "State" not in values:
        return None
    return Node(
        name=values["NodeName"],
        state=values["State"].lower(),
        cpus=int(values.get("CPUTot", 0)),
        cpus_used=int(values.get("CPUAlloc", 0)),
        gpus=_gpus(values.get("Gres", "")),
        gpus_used=_gpus(values.get("GresUsed", "")),
        reason=line.partition(" Reason=")[2].strip(),
        slurmd_started=_time(values.get("SlurmdStartTime", "None")),
    )


def _gpus(gres: str) -> int:
    """2 from `gpu:tesla:2` or `gpu:tesla:2(IDX:0-1)`; 0 from `(null)`."""
    return sum(int(number) for number in re.findall(r"\bgpu:\w+:(\d+)", gres))


def queue(lab: Lab) -> tuple[QueuedJob, ...]:
    """The jobs that wait or run, oldest first; empty while the controller gives no answer."""
    argv = ["squeue", "--noheader", "--sort=i", "--format=%i|%P|%T|%M|%R|%j"]  # the name last: it may hold a bar
    done = run(argv, env=clean_environment(lab.environment()), timeout=_TIMEOUT)
    rows = [line.split("|", 5) for line in done.stdout.splitlines()]
    return tuple(
        QueuedJob(job=job, name=name, partition=partition, state=state, elapsed=elapsed, where=where)
        for job, partition, state, elapsed, where, name in rows
    )


def finished_jobs(lab: Lab) -> tuple[FinishedJob, ...]:
    """The jobs that have ended, in the order of their ends, from Slurm's jobcomp/filetxt: it needs no database."""
    try:
        text = lab.place.finished_jobs.read_text(errors="replace")
    except FileNotFoundError:  # slurmctld makes it with the first job
        return ()
    return tuple(job for line in text.splitlines() if (job := parse_finished(line)) is not None)


# The format of src/plugins/jobcomp/filetxt in Slurm 22.05. It does not quote names and directories with spaces.
_FINISHED = re.compile(
    r"JobId=(?P<number>\d+) UserId=(?P<user>.*?)\(\d+\) GroupId=.*? Name=(?P<name>.*) JobState=(?P<state>\w+) "
    r"Partition=(?P<partition>\S*) TimeLimit=\S+ StartTime=(?P<started>\S+) EndTime=(?P<ended>\S+) "
    r"NodeList=(?P<nodes>.*?) NodeCnt=\d+ ProcCnt=\d+ WorkDir=(?P<directory>.*) ReservationName=.*? "
    r"SubmitTime=(?P<submitted>\S+) EligibleTime=\S+ "
    r"(?:ArrayJobId=(?P<array>\d+) ArrayTaskId=(?P<task>\d+) )?.*?"
    r"ExitCode=\d+:\d+ ExitCode=(?P<status>\d+):(?P<signal>\d+) ?"
)


def parse_finished(line: str) -> FinishedJob | None:
    """A line of the jobcomp/filetxt file; None for another line, such as the rest of a job name with a newline."""
    match = _FINISHED.fullmatch(line)
    if match is None:
        return None
    return FinishedJob(
        job=f"{match['array']}_{match['task']}" if match["array"] else match["number"],
        number=int(match["number"]),
        name=match["name"],
        user=match["user"],
        partition=match["partition"],
        state=match["state"],
        exit_status=int(match["status"]),
        signal=int(match["signal"]),
        nodes="" if match["nodes"] == "(null)" else match["nodes"],
        submitted=_time(match["submitted"]),
        started=_time(match["started"]),
        ended=_time(match["ended"]),
        directory=match["directory"],
    )


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # `Unknown`, `None`
        return None
