"""The JSON of Slurm's programs: squeue, sacct and sinfo, whose forms differ between releases.

Releases 21.08 to 23.02 print plain numbers, a word for a state and the raw wait status (openapi v0.0.37 to v0.0.39);
from 23.11 on (data_parser v0.0.40) a number may be `{"set": …, "infinite": …, "number": …}` and a state is a list.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from toolkit.scheduler.slurm import job_state
from toolkit.scheduler.slurm_nodes import parse_gres, usable
from toolkit.scheduler.states import HostFacts
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from toolkit.scheduler.states import JobState


def parse_jobs(text: str) -> tuple[JobState, ...]:
    """The jobs of `squeue --json` or `sacct --json`. Raises ProgramFailed if the text is not such a document."""
    return tuple(_job(job) for job in _records(text, "jobs"))


def parse_nodes(text: str) -> tuple[HostFacts, ...]:
    """The nodes of `sinfo --json` or `scontrol show nodes --json`. Raises ProgramFailed as parse_jobs."""
    found: dict[str, HostFacts] = {}
    for record in _records(text, "nodes", "sinfo"):
        for host in _hosts(record):
            there = found.get(host.name)
            partitions = ((*there.partitions, *host.partitions)) if there else host.partitions
            found[host.name] = HostFacts(
                *(host.name, host.cpus, host.memory, host.gpus, host.gpu_type, host.usable),
                tuple(dict.fromkeys(partitions)),
            )
    return tuple(found.values())


def number(value: object) -> int | None:
    """An integer in either form; None if it is not set, infinite, or no integer."""
    if isinstance(value, dict):
        return number(value.get("number")) if value.get("set", True) and not value.get("infinite") else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _records(text: str, *keys: str) -> list[dict[str, Any]]:
    try:
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise ProgramFailed(f"Slurm printed no JSON: {error}", code="scheduler-output") from error
    found = next((document[key] for key in keys if key in document), None) if isinstance(document, dict) else None
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise ProgramFailed(f"Slurm's JSON has no list `{keys[0]}`", code="scheduler-output")
    return found


def _job(job: dict[str, Any]) -> JobState:
    nested = isinstance(job.get("state"), dict)  # sacct
    state = _inner(job, "state", "current") if nested else job.get("job_state", job.get("state"))
    reason = _inner(job, "state", "reason") if nested else job.get("state_reason", "")
    status, signal = _exit(job.get("exit_code"))
    nodes = job.get("nodes")
    return job_state(
        _number(job),
        _word(state),
        _word(reason),
        status=status,
        signal=signal,
        nodes=nodes if isinstance(nodes, str) else "",
    )


def _word(value: object) -> str:
    """The base state of `["RUNNING", "COMPLETING"]`: in the later releases the flags follow it."""
    if isinstance(value, list):
        return str(value[0]) if value else ""
    return value if isinstance(value, str) else ""


def _exit(value: object) -> tuple[int | None, int | None]:
    raw = number(value)
    if raw is not None and not isinstance(value, dict):  # the wait status: 768 is exit 3, 4021 & 127 is signal 53
        return (0 if raw & 127 else raw >> 8), raw & 127
    if not isinstance(value, dict):
        return None, None
    signal = value.get("signal")
    if isinstance(signal, dict):
        signal = signal.get("id", signal.get("signal_id"))
    return number(value.get("return_code")), number(signal)


def _number(job: dict[str, Any]) -> str:
    """`5_0` of a task, `5_[1-3%1]` of those that wait, else the number."""
    array = job.get("array")  # sacct
    nested = array if isinstance(array, dict) else {}
    parent = number(job.get("array_job_id", nested.get("job_id")))
    task = number(job.get("array_task_id", nested.get("task_id")))
    several = job.get("array_task_string", nested.get("task"))
    if parent and task is not None:
        return f"{parent}_{task}"
    if parent and several and isinstance(several, str):
        return f"{parent}_[{several}]"
    return str(number(job.get("job_id")) or job.get("job_id", ""))


def _hosts(record: dict[str, Any]) -> list[HostFacts]:
    if "name" in record:  # up to 23.02: one record for each node
        count, kind = parse_gres(str(record.get("gres", "")))
        flagged = [*_list(record.get("state")), *_list(record.get("state_flags"))]
        return [
            HostFacts(
                str(record["name"]),
                cpus=number(record.get("cpus")) or 0,
                memory=number(record.get("real_memory")) or 0,
                gpus=count,
                gpu_type=kind,
                usable=usable("+".join(map(str, flagged))),
                partitions=tuple(map(str, _list(record.get("partitions")))),
            )
        ]
    # From 23.11 on sinfo prints one record for each group of equal nodes in a partition.
    count, kind = parse_gres(str(_inner(record, "gres", "total") or ""))
    partition = _inner(record, "partition", "name")
    words = _inner(record, "node", "state")
    names = _inner(record, "nodes", "nodes")
    return [
        HostFacts(
            str(name),
            cpus=number(_inner(record, "cpus", "maximum")) or 0,
            memory=number(_inner(record, "memory", "maximum")) or 0,
            gpus=count,
            gpu_type=kind,
            usable=usable("+".join(map(str, _list(words)))),
            partitions=(str(partition),) if partition else (),
        )
        for name in _list(names)
    ]


def _list(value: object) -> list[object]:
    """The list that `value` is, or has as its one value."""
    return value if isinstance(value, list) else [] if value in (None, "") else [value]


def _inner(record: dict[str, Any], outer: str, inner: str) -> object:
    value = record.get(outer)
    return value.get(inner) if isinstance(value, dict) else None
