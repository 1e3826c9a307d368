"""What a job costs at most: node-hours and price, by its time limit and the cluster's profile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.scheduler.needs import describe_time, needs_of

if TYPE_CHECKING:
    from toolkit.scheduler.needs import Needs
    from toolkit.scheduler.profiles import Partition, Profile
    from toolkit.scheduler.resources import Resources


@dataclass(frozen=True, slots=True)
class Estimate:
    """The most that a job can use. `seconds` is the time limit of a task, None if no limit is known.

    `node_hours` and `price` are for all `tasks` of an array; None where a value that they need is unknown. `time_from`
    says where the time limit comes from. `partition` is None if it is unknown.
    """

    partition: str | None
    nodes: int
    tasks: int
    seconds: int | None
    time_from: str
    node_hours: float | None
    price: float | None
    unit: str | None

    def lines(self) -> tuple[str, ...]:
        """The estimate in words."""
        if self.seconds is None or self.node_hours is None:
            return ("No estimate: no time limit is known. Add --time.",)
        tasks = f"{self.tasks} tasks x " if self.tasks > 1 else ""
        product = f"{tasks}{self.nodes} node{'s' if self.nodes > 1 else ''} x {describe_time(self.seconds)}"
        unit = "node-hour" if self.node_hours == 1 else "node-hours"
        hours = f"At most {number(self.node_hours)} {unit}: {product} ({self.time_from})"
        if self.price is None:
            return (hours, "No price: the cluster profile has none for this partition.")
        return (hours, f"At most {number(self.price)} {self.unit}")


def estimate(profile: Profile, resources: Resources) -> Estimate:
    """The estimate of a job. It counts whole nodes, or units of a resource type, until the time limit."""
    needs = needs_of(resources)
    partition = profile.partition(resources.partition) if resources.partition else profile.default_partition
    seconds, time_from = _time(needs, partition)
    nodes = _nodes(needs, partition)
    hours = None if seconds is None else needs.tasks * nodes * seconds / 3600
    price = None if hours is None or partition is None or partition.price is None else hours * partition.price
    name = partition.name if partition else resources.partition
    return Estimate(name, nodes, needs.tasks, seconds, time_from, hours, price, profile.unit)


def _nodes(needs: Needs, partition: Partition | None) -> int:
    if needs.nodes is not None:
        return needs.nodes
    per_node = partition.gpus if partition else None
    return max(1, math.ceil((needs.gpus or 0) / per_node)) if per_node else 1


def _time(needs: Needs, partition: Partition | None) -> tuple[int | None, str]:
    if needs.time is not None and not math.isinf(needs.time):
        return int(needs.time), "the job's time limit"
    if partition is None:
        return None, ""
    if needs.time is None and partition.default_time is not None:
        return partition.default_time, f"the default of partition {partition.name}"
    if partition.max_time is not None:
        return partition.max_time, f"the limit of partition {partition.name}"
    return None, ""


def number(value: float) -> str:
    """A number without needless digits: `0.5`, `12`, `1234.57`."""
    return f"{value:.4g}" if value < 1 else f"{value:.2f}".rstrip("0").rstrip(".")
