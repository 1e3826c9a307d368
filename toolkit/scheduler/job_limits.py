"""Limits of a whole job, as the queues of PBS have them, and where a routing queue passes a job on to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from toolkit.scheduler.needs import describe_memory, describe_time
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.scheduler.needs import Needs
    from toolkit.scheduler.profiles import Partition


def refusals(partition: Partition, needs: Needs) -> Iterator[str]:
    """Why a queue would not take a job, each as the end of a sentence. What its nodes have is another question."""
    limits, nodes = partition.job, needs.nodes or 1
    cores = nodes * (needs.cores or 1)
    for asked, least, most, what in (
        (needs.gpus or None, limits.min_gpus, limits.max_gpus, "GPU"),
        (cores, limits.min_cores, limits.max_cores, "core"),
        (nodes, limits.min_nodes, limits.max_nodes, "node"),
    ):
        if asked is not None and least is not None and asked < least:
            yield f"is for jobs of at least {count(least, what)} in all, and the job asks for {asked}"
        if asked is not None and most is not None and asked > most:
            yield f"allows a job {count(most, what)} in all, and the job asks for {asked}"
    if needs.memory is not None and limits.max_memory is not None and nodes * needs.memory > limits.max_memory:
        has, asked_for = describe_memory(limits.max_memory), describe_memory(nodes * needs.memory)
        yield f"allows a job {has} of memory in all, and the job asks for {asked_for}"
    if needs.time is not None and limits.min_time is not None and needs.time < limits.min_time:
        least_time, time = describe_time(limits.min_time), describe_time(needs.time)
        yield f"is for jobs of at least {least_time}, and the job asks for {time}"


def destination(partition: Partition, needs: Needs) -> Partition | None:
    """The queue that a routing queue passes a job on to: the first that takes it, also where the job never starts."""
    return next((queue for queue in partition.destinations if _takes(queue, needs)), None)


def _takes(queue: Partition, needs: Needs) -> bool:
    too_long = needs.time is not None and needs.time > (math.inf if queue.max_time is None else queue.max_time)
    return not too_long and not list(refusals(queue, needs))
