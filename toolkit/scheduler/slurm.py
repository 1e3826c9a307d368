"""Slurm's text about jobs: squeue, scontrol, sacct and the jobcomp/filetxt file (20.11 to 26.05)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from toolkit.scheduler.numbers import whole
from toolkit.scheduler.reasons import is_held, reason_words
from toolkit.scheduler.states import JobState, State

if TYPE_CHECKING:
    from collections.abc import Iterator

# JOB STATE CODES of squeue(1) and sacct(1); the last word of a combined state comes first in the lists of the JSON.
_STATES = {
    "PENDING": State.PENDING,
    "REQUEUED": State.PENDING,
    "REQUEUE_FED": State.PENDING,
    "CONFIGURING": State.PENDING,
    "REQUEUE_HOLD": State.HELD,
    "SPECIAL_EXIT": State.HELD,
    "RUNNING": State.RUNNING,
    "COMPLETING": State.RUNNING,
    "RESIZING": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "STAGE_OUT": State.RUNNING,
    "STOPPED": State.RUNNING,
    "SUSPENDED": State.RUNNING,
    "COMPLETED": State.COMPLETED,
    "FAILED": State.FAILED,
    "TIMEOUT": State.TIMED_OUT,
    "DEADLINE": State.TIMED_OUT,
    "OUT_OF_MEMORY": State.OUT_OF_MEMORY,
    "NODE_FAIL": State.NODE_FAILED,
    "BOOT_FAIL": State.NODE_FAILED,
    "LAUNCH_FAILED": State.NODE_FAILED,
    "CANCELLED": State.CANCELLED,
    "PREEMPTED": State.CANCELLED,
    "REVOKED": State.GONE,
}
_OWN_WORDS = {
    "CONFIGURING": "its nodes are being prepared",
    "SUSPENDED": "suspended",
    "STOPPED": "stopped",
    "COMPLETING": "it is ending",
    "PREEMPTED": "preempted by another job",
    "DEADLINE": "it reached its deadline",
    "TIMEOUT": "it reached its time limit",
    "OUT_OF_MEMORY": "it needed more memory than requested",
    "BOOT_FAIL": "a node of the job did not boot",
    "NODE_FAIL": "a node of the job failed",
}
# A job with this signal and no exit status never ran its script (seen with 22.05: the log could not be opened).
_NOT_LAUNCHED = 53

# What squeue has to be asked for; the name is last, because it may hold a bar.
SQUEUE_FORMAT = "%i|%T|%r|%N|%j"
SACCT_FORMAT = "JobID,State,ExitCode,Reason,NodeList"


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


def job_state(
    job: str, words: str, reason: str = "", *, status: int | None = None, signal: int | None = None, nodes: str = ""
) -> JobState:
    """The neutral state. `words` is Slurm's own, such as `CANCELLED by 1000`; an unknown one counts as running."""
    word = (words.split() or [""])[0].rstrip("+").upper()
    state = _STATES.get(word, State.RUNNING)
    if state is State.PENDING and is_held(reason):
        state = State.HELD
    said = reason_words("slurm", reason)
    if word not in _STATES:
        said = f"Slurm reports the state {words}, which ctk does not know"
    elif state is State.FAILED and signal == _NOT_LAUNCHED and not status:
        said = reason_words("slurm", "JobLaunchFailure")
    elif word in _OWN_WORDS:
        said = _OWN_WORDS[word]
    elif state is State.FAILED and signal and not said:
        said = f"ended by signal {signal}"
    final = state.is_final
    return JobState(job, state, words, said, status if final else None, (signal or None) if final else None, nodes)


def parse_squeue(text: str) -> tuple[JobState, ...]:
    """Lines of `squeue --noheader --format=SQUEUE_FORMAT`. A pending array is one line, `5_[1-3%1]`."""
    rows = [line.split("|", 4) for line in text.splitlines()]
    return tuple(
        job_state(job, words, reason, nodes=nodes)
        for job, words, reason, nodes, _ in (row for row in rows if len(row) == 5 and row[0][:1].isdigit())
    )


def parse_scontrol(text: str) -> tuple[JobState, ...]:
    """Lines of `scontrol show job --oneliner`. Slurm knows a job for MinJobAge after its end, usually 300 s."""
    return tuple(
        job_state(
            _number(fields),
            fields["JobState"],
            fields.get("Reason", ""),
            status=exit_code(fields.get("ExitCode", ""))[0],
            signal=exit_code(fields.get("ExitCode", ""))[1],
            nodes=_unless_null(fields.get("NodeList", "")),
        )
        for fields in scontrol_fields(text)
        if "JobId" in fields and "JobState" in fields
    )


def scontrol_fields(text: str) -> Iterator[dict[str, str]]:
    """The fields `Key=value` of each line of `scontrol show … --oneliner`; of a repeated key, the first.

    A job name or a path with blanks is cut at the first one: Slurm quotes nothing there.
    """
    for line in text.splitlines():
        fields: dict[str, str] = {}
        for key, value in re.findall(r"(?:^|(?<= ))([A-Za-z][\w/:]*)=(\S*)", line):
            fields.setdefault(key, value)
        if fields:
            yield fields


def parse_sacct(text: str) -> tuple[JobState, ...]:
    """Lines of `sacct --noheader --parsable2 --format=SACCT_FORMAT`; steps (`12.batch`) are left out."""
    found = []
    for line in text.splitlines():
        job, _, rest = line.partition("|")
        words, code, reason, nodes = [*rest.split("|"), "", "", "", ""][:4]
        if not job[:1].isdigit() or "." in job:
            continue
        status, signal = exit_code(code)
        found.append(job_state(job, words, reason, status=status, signal=signal, nodes=nodes))
    return tuple(found)


def exit_code(text: str) -> tuple[int | None, int | None]:
    """Exit status and signal of Slurm's `3:0`; None for what is not there."""
    status, _, signal = text.partition(":")
    return whole(status), whole(signal)


def _number(fields: dict[str, str]) -> str:
    array, task = fields.get("ArrayJobId"), fields.get("ArrayTaskId")
    if array is None or task is None:
        return fields["JobId"]
    return f"{array}_{task}" if task.isdigit() else f"{array}_[{task}]"


def _unless_null(text: str) -> str:
    return "" if text == "(null)" else text


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
        nodes=_unless_null(match["nodes"]),
        submitted=parse_time(match["submitted"]),
        started=parse_time(match["started"]),
        ended=parse_time(match["ended"]),
        directory=match["directory"],
    )


def parse_time(text: str) -> datetime | None:
    """A time as Slurm's programs print it; None for `Unknown` and `None`."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
