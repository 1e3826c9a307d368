"""What a profile adds to a job's resources: values that its request templates need, and that only one answer has."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.scheduler.profiles import Partition, Profile
    from toolkit.scheduler.requests import RequestTemplate, RequestTemplates
    from toolkit.scheduler.resources import Resources


def named_fields(requests: RequestTemplates) -> frozenset[str]:
    """The fields that any of the templates names."""
    templates: list[RequestTemplate | None] = [requests.resources, requests.cores, requests.gpus, requests.memory]
    templates += [requests.time, requests.queue, requests.account, requests.qos, *requests.arguments]
    return frozenset(name for template in templates if template is not None for name in template.names)


def chosen_partition(profile: Profile, resources: Resources) -> Partition | None:
    """The partition that the job names, else the cluster's default one; None if there is none, or it names several."""
    return profile.partition(resources.partition) if resources.partition else profile.default_partition


def complete_resources(profile: Profile, resources: Resources, requests: RequestTemplates) -> dict[str, Any]:
    """The fields of `resources` that the profile fills: where `requests` name them, and the job leaves them out.

    The partition is the default one, the number of nodes (or units of a resource type) the smallest that has the GPUs,
    the time limit the partition's default, the type of the GPUs the only one there is.
    """
    fields = named_fields(requests)
    partition = chosen_partition(profile, resources)
    found: dict[str, Any] = {}
    if partition is not None and resources.partition is None and "queue" in fields:
        found["partition"] = partition.name
    gpus = resources.gpus
    if gpus is not None and gpus.count:
        types = partition.gpu_types if partition and partition.gpu_types else [gpu.type for gpu in profile.gpu_types]
        if gpus.kind is None and len(types) == 1 and "type" in fields:
            found["gpus"] = replace(gpus, kind=types[0])
        if resources.nodes is None and partition is not None and partition.gpus and fields & {"nodes", "count"}:
            found["nodes"] = math.ceil(gpus.count / partition.gpus)
    if resources.time is None and partition is not None and partition.default_time and fields & {"time", "seconds"}:
        found["time"] = partition.default_time
    return found
