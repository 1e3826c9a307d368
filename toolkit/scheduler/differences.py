"""How a cluster profile differs from what the scheduler of this host says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.scheduler.needs import describe_memory, describe_time
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.scheduler.profiles import Partition, Profile

# What both sides can know of a partition, and how to say it.
_SHOWN: dict[str, tuple[str, Callable[[int], str]]] = {
    "max_time": ("time limit", describe_time),
    "max_nodes": ("largest number of nodes", str),
    "cores": ("cores of a node", str),
    "memory": ("memory of a node", describe_memory),
    "gpus": ("GPUs of a node", str),
}


def differences(profile: Profile, host: Profile) -> tuple[Finding, ...]:
    """What the profile says otherwise than the scheduler of the host, of whose facts `host` was made.

    What the profile leaves out is no difference.
    """
    return tuple(_warn(message) for message in _messages(profile, host))


def _messages(profile: Profile, host: Profile) -> Iterator[str]:
    if profile.scheduler is not host.scheduler:
        yield f"the scheduler is {profile.scheduler} in the profile, and {host.scheduler} on this host"
        return
    for partition in profile.partitions:
        there = host.partition(partition.name)
        if there is None:
            names = ", ".join(found.name for found in host.partitions) or "none"
            yield f"partition {partition.name} is in the profile, and not on this cluster (it has {names})"
        else:
            yield from _of_partition(partition, there)
    if profile.partitions:
        for found in host.partitions:
            if profile.partition(found.name) is None:
                yield f"partition {found.name} is on this cluster, and not in the profile"
    known = [gpu.type for gpu in host.gpu_types]
    for gpu in profile.gpu_types:
        if known and gpu.type not in known:
            yield f"GPU type {gpu.type} is in the profile, and not on this cluster (it has {', '.join(known)})"


def _of_partition(ours: Partition, theirs: Partition) -> Iterator[str]:
    for field, (what, describe) in _SHOWN.items():
        said, seen = getattr(ours, field), getattr(theirs, field)
        if said is not None and said != seen:
            found = "no limit" if seen is None else describe(seen)
            yield f"partition {ours.name}: {what} is {describe(said)} in the profile, and {found} on this cluster"


def _warn(message: str) -> Finding:
    fix = "Correct the profile, or write it anew: ctk cluster detect NAME --force"
    return Finding("profile-differs", Severity.WARNING, message, fix)
