"""What a job needs, in the numbers that a cluster profile limits; and those numbers in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.scheduler.values import NO_TIME_LIMIT
from toolkit.support.quantities import parse_size
from toolkit.support.text import count

if TYPE_CHECKING:
    from toolkit.scheduler.resources import Resources
    from toolkit.scheduler.values import Array

_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


@dataclass(frozen=True, slots=True)
class Needs:
    """What a job asks for; None where it leaves the choice to the site.

    `time` is in seconds, infinite for no limit. `gpus` are those of the whole job, `cores` and `memory` (bytes) those
    of one node; memory 0 is all of a node. `tasks` is the number of tasks of an array, 1 for a job that is none.
    """

    nodes: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    cores: int | None = None
    memory: int | None = None
    time: float | None = None
    tasks: int = 1

    @property
    def gpus_per_node(self) -> int | None:
        """GPUs on the node that has most of them, if the job says on how many nodes it runs."""
        return None if self.gpus is None else math.ceil(self.gpus / (self.nodes or 1))


def needs_of(resources: Resources) -> Needs:
    """The numbers of a job's checked resources."""
    per_node = (resources.tasks_per_node, resources.cpus_per_task)
    time = resources.time
    return Needs(
        nodes=resources.nodes,
        gpus=resources.gpus.count if resources.gpus else None,
        gpu_type=resources.gpus.kind if resources.gpus and resources.gpus.count else None,
        cores=None if per_node == (None, None) else (per_node[0] or 1) * (per_node[1] or 1),
        memory=None if resources.mem is None else parse_size(resources.mem),
        time=math.inf if time == NO_TIME_LIMIT else time,
        tasks=array_size(resources.array) if resources.array else 1,
    )


def array_size(array: Array) -> int:
    """The number of tasks: 10 of `0-9`, 4 of `0-9:3%2`."""
    return sum((tasks.last - tasks.first) // tasks.step + 1 for tasks in array.ranges)


def format_time(seconds: float) -> str:
    """A time limit as options take it: `00:05:00`, `7-00:00:00`."""
    if math.isinf(seconds):
        return "UNLIMITED"
    days, rest = divmod(int(seconds), _DAY)
    clock = f"{rest // _HOUR:02}:{rest % _HOUR // _MINUTE:02}:{rest % _MINUTE:02}"
    return f"{days}-{clock}" if days else clock


def describe_time(seconds: float) -> str:
    """`5 minutes`, `24 hours`, `7 days`, `1 hour 30 minutes`: hours up to two days, then days where they are whole."""
    if math.isinf(seconds):
        return "no limit"
    whole = int(seconds)
    if whole > 2 * _DAY and whole % _DAY == 0:
        return count(whole // _DAY, "day")
    parts = ((whole // _HOUR, "hour"), (whole % _HOUR // _MINUTE, "minute"), (whole % _MINUTE, "second"))
    return " ".join(count(number, unit) for number, unit in parts if number) or "0 seconds"


def describe_memory(size: int) -> str:
    """`16 GiB`, `1.5 GiB`, `800 MiB`."""
    amount, unit = (size / 1024**3, "GiB") if size >= 1024**3 else (size / 1024**2, "MiB")
    return f"{amount:.0f} {unit}" if amount >= 1000 else f"{amount:.4g} {unit}"


def memory_option(size: int) -> str:
    """The largest value of `--mem` that is not above `size` bytes: `16G`, `1500M`."""
    return f"{size // 1024**3}G" if size % 1024**3 == 0 else f"{size // 1024**2}M"
