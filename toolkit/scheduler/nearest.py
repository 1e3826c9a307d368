"""The request nearest to a job's that a partition allows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.scheduler.job_limits import refusals
from toolkit.scheduler.needs import format_time, memory_option, needs_of
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import NO_TIME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.scheduler.profiles import Partition
    from toolkit.scheduler.resources import Resources


def nearest_options(partition: Partition, resources: Resources, *, even: bool = False) -> str | None:
    """The options to change, as a user writes them: `--time 00:05:00 --nodes 1`. None if none help, or none need to.

    `even`: a job runs on one node unless it names more, and each gets the same number of GPUs.
    """
    if partition.destinations:
        found = (nearest_options(queue, resources, even=even) for queue in partition.destinations)
        return next(filter(None, found), None)
    if even:
        resources = replace(resources, nodes=resources.nodes or 1)
    nearest: Resources | None = resources
    for step in (*_STEPS, *((_even,) if even else ()), _within_job_limits):
        nearest = step(partition, nearest) if nearest is not None else None
    if nearest is None:
        return None
    changed = [key for key in OPTIONS if getattr(nearest, key) != getattr(resources, key)]
    return " ".join(f"--{OPTIONS[key].name} {_written(nearest, key)}" for key in changed) or None


def _written(resources: Resources, key: str) -> str:
    value = getattr(resources, key)
    return format_time(value) if key == "time" else str(value)


def _gpu_type(partition: Partition, resources: Resources) -> Resources:
    gpus = resources.gpus
    if gpus is None or gpus.kind is None or not partition.gpu_types or gpus.kind in partition.gpu_types:
        return resources
    return replace(resources, gpus=replace(gpus, kind=partition.gpu_types[0]))


def _nodes(partition: Partition, resources: Resources) -> Resources:
    nodes = max(resources.nodes or 1, partition.min_nodes or 1)
    nodes = min(nodes, partition.max_nodes or nodes)
    return resources if nodes == (resources.nodes or 1) else replace(resources, nodes=nodes)


def _gpus(partition: Partition, resources: Resources) -> Resources | None:
    """More nodes, if that is what it takes; else fewer GPUs. None for a partition without GPUs."""
    gpus = resources.gpus
    if gpus is None or not gpus.count or partition.gpus is None:
        return resources
    if partition.gpus == 0:
        return None
    needed = math.ceil(gpus.count / partition.gpus)
    nodes = min(needed, partition.max_nodes or needed)
    if resources.nodes is None and nodes == needed:
        return resources
    nodes = max(nodes, resources.nodes or 1)
    total = min(gpus.count, nodes * partition.gpus)
    if nodes != resources.nodes and (resources.nodes is not None or total < gpus.count):
        resources = replace(resources, nodes=nodes)
    return resources if total == gpus.count else replace(resources, gpus=replace(gpus, count=total))


def _even(partition: Partition, resources: Resources) -> Resources:
    """The same number of GPUs on each node, and not fewer in all."""
    gpus, nodes = resources.gpus, resources.nodes or 1
    if gpus is None or not gpus.count or partition.gpus is None:
        return resources
    return replace(resources, gpus=replace(gpus, count=nodes * math.ceil(gpus.count / nodes)))


def _within_job_limits(partition: Partition, resources: Resources) -> Resources | None:
    """The resources, unless the limits of a whole job are against them."""
    return None if list(refusals(partition, needs_of(resources))) else resources


def _cores(partition: Partition, resources: Resources) -> Resources:
    cores = needs_of(resources).cores
    if cores is None or partition.cores is None or cores <= partition.cores:
        return resources
    tasks = min(resources.tasks_per_node or 1, partition.cores)
    if resources.tasks_per_node is not None:
        resources = replace(resources, tasks_per_node=tasks)
    each = partition.cores // tasks
    return resources if resources.cpus_per_task is None else replace(resources, cpus_per_task=each)


def _memory(partition: Partition, resources: Resources) -> Resources:
    asked = needs_of(resources).memory
    if asked is None or partition.memory is None or asked <= partition.memory:
        return resources
    return replace(resources, mem=memory_option(partition.memory))


def _time(partition: Partition, resources: Resources) -> Resources:
    if resources.time is None:
        return resources
    limits = [partition.max_time] if partition.max_time is not None else []
    nodes = resources.nodes or 1
    limits += [partition.node_hours * 3600 // nodes] if partition.node_hours is not None and nodes > 1 else []
    asked = math.inf if resources.time == NO_TIME_LIMIT else resources.time
    return resources if asked <= min(limits, default=math.inf) else replace(resources, time=min(limits))


_STEPS: tuple[Callable[[Partition, Resources], Resources | None], ...] = (
    *(_gpu_type, _nodes, _gpus, _cores, _memory, _time),
)
