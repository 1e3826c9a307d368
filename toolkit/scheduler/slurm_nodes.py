"""Slurm's text about nodes, partitions and the queue: scontrol, sinfo and squeue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.scheduler.numbers import leading, whole
from toolkit.scheduler.slurm import parse_time, scontrol_fields
from toolkit.scheduler.states import HostFacts
from toolkit.support.text import shorten

if TYPE_CHECKING:
    from datetime import datetime

# What squeue has to be asked for; the name is last, because it may hold a bar.
QUEUE_FORMAT = "%i|%P|%T|%M|%R|%j"
# One line for each node and partition.
SINFO_FORMAT = "%N|%t|%c|%m|%G|%P"

_DOWN = ("down", "drain", "drng", "fail", "maint", "unk", "inval", "no_respond", "planned_down")


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
class Partition:
    """A partition of `scontrol show partition`. Times are as Slurm writes them; None is no limit, or none is set.

    `max_cpus` and `max_memory` (MiB) are limits of a job on one node.
    """

    name: str
    is_default: bool
    max_time: str | None
    max_nodes: int | None
    nodes: str
    default_time: str | None = None
    min_nodes: int | None = None
    max_cpus: int | None = None
    max_memory: int | None = None
    is_up: bool = True


def parse_node(line: str) -> Node | None:
    """A line of `scontrol show node --details --oneliner`; None for another line."""
    values = dict(re.findall(r"(\w+)=(\S*)", line.partition(" Reason=")[0]))
    if "NodeName" not in values or "State" not in values:
        return None
    return Node(
        name=values["NodeName"],
        state=values["State"].lower(),
        cpus=whole(values.get("CPUTot")) or 0,
        cpus_used=whole(values.get("CPUAlloc")) or 0,
        gpus=parse_gres(values.get("Gres", ""))[0],
        gpus_used=parse_gres(values.get("GresUsed", ""))[0],
        reason=shorten(line.partition(" Reason=")[2].strip()),
        slurmd_started=parse_time(values.get("SlurmdStartTime", "None")),
    )


def parse_gres(gres: str) -> tuple[int, str | None]:
    """Number and type of the GPUs of `gpu:tesla:2`, `gpu:a100:4(S:0-1)`, `gpu:2` or `(null)`.

    The type is that of most of them, None where Slurm names none.
    """
    count, kinds = 0, dict[str, int]()
    for kind, number in re.findall(r"\bgpu(?::([A-Za-z][\w.-]*|\d\w*[A-Za-z][\w.-]*))?:([0-9]{1,9})(?![\w.-])", gres):
        count += int(number)
        if kind:
            kinds[kind] = kinds.get(kind, 0) + int(number)
    return count, max(kinds, key=lambda kind: kinds[kind]) if kinds else None


def parse_queue(text: str) -> tuple[QueuedJob, ...]:
    """Lines of `squeue --noheader --format=QUEUE_FORMAT`."""
    rows = [line.split("|", 5) for line in text.splitlines()]
    return tuple(
        QueuedJob(*map(shorten, (job, name, partition, state, elapsed, where)))
        for job, partition, state, elapsed, where, name in (row for row in rows if len(row) == 6)
    )


def parse_sinfo(text: str) -> tuple[HostFacts, ...]:
    """Lines of `sinfo --Node --noheader --format=SINFO_FORMAT`: each node once, with its partitions."""
    found: dict[str, HostFacts] = {}
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) != 6:
            continue
        name, state, cpus, memory, gres, partition = (part.strip() for part in parts)
        count, kind = parse_gres(gres)
        there = found.get(name)
        found[name] = HostFacts(
            name,
            cpus=leading(cpus) or 0,
            memory=leading(memory) or 0,
            gpus=count,
            gpu_type=kind,
            usable=usable(state),
            partitions=(*(there.partitions if there else ()), partition.rstrip("*")),
        )
    return tuple(found.values())


def usable(state: str) -> bool:
    """Whether a node in Slurm's `state` can run jobs, now or when others end."""
    return not state.endswith("*") and not any(word in state.lower() for word in _DOWN)


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """Lines of `scontrol show partition --oneliner`."""
    return tuple(
        Partition(
            fields["PartitionName"],
            fields.get("Default") == "YES",
            None if fields.get("MaxTime", "UNLIMITED") == "UNLIMITED" else fields["MaxTime"],
            whole(fields.get("MaxNodes")),
            fields.get("Nodes", ""),
            fields["DefaultTime"] if fields.get("DefaultTime", "NONE") not in ("NONE", "UNLIMITED") else None,
            whole(fields.get("MinNodes")) or None,
            whole(fields.get("MaxCPUsPerNode")),
            whole(fields.get("MaxMemPerNode")),
            fields.get("State", "UP") == "UP",
        )
        for fields in scontrol_fields(text)
        if "PartitionName" in fields
    )
