"""Documents about cluster profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.scheduler.requests import TEMPLATE_KEYS
from toolkit.scheduler.resources import OPTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.scheduler.estimate import Estimate
    from toolkit.scheduler.profiles import GpuType, JobLimits, Partition, Profile
    from toolkit.scheduler.requests import RequestTemplates


def listed(name: str, path: Path, owner: str, profile: Profile | None) -> dict[str, Any]:
    """A row of `ctk cluster list`; `profile` is None if its file is invalid."""
    return {
        "name": name,
        "path": str(path),
        "owner": owner,
        "scheduler": profile.scheduler.value if profile else None,
        "description": profile.description if profile else "",
        "valid": profile is not None,
    }


def profile(found: Profile) -> dict[str, Any]:
    """A cluster profile."""
    return {
        "name": found.name,
        "path": str(found.path),
        "scheduler": found.scheduler.value,
        "description": found.description,
        "sources": list(found.sources),
        "checked": found.checked,
        "required": [OPTIONS[key].name for key in found.required],
        "internet": found.internet,
        "modules": list(found.modules.names),
        "module_setup": found.modules.setup,
        "binds": list(found.binds),
        "proxy": found.proxy.url if found.proxy else None,
        "no_proxy": list(found.proxy.exceptions) if found.proxy else [],
        "max_tasks": found.max_tasks,
        "price_unit": found.unit,
        "arguments": [template.text for template in found.requests.arguments],
        "requests": _requests(found.requests),
        "partitions": [_partition(partition) for partition in found.partitions],
        "gpu_types": [_gpu_type(gpu) for gpu in found.gpu_types],
    }


def _requests(requests: RequestTemplates) -> list[dict[str, str]]:
    templates = ((key, getattr(requests, key)) for key in TEMPLATE_KEYS)
    return [{"part": key, "template": template.text} for key, template in templates if template is not None]


def _partition(partition: Partition) -> dict[str, Any]:
    return {
        "name": partition.name,
        "default": partition.is_default,
        "description": partition.description,
        "max_seconds": partition.max_time,
        "default_seconds": partition.default_time,
        "min_nodes": partition.min_nodes,
        "max_nodes": partition.max_nodes,
        "cores_per_node": partition.cores,
        "memory_bytes": partition.memory,
        "gpus_per_node": partition.gpus,
        "job": _job_limits(partition.job),
        "destinations": [queue.name for queue in partition.destinations],
        "gpu_types": list(partition.gpu_types),
        "max_node_hours": partition.node_hours,
        "price_per_node_hour": partition.price,
    }


def _job_limits(limits: JobLimits) -> dict[str, Any]:
    return {
        "min_gpus": limits.min_gpus,
        "max_gpus": limits.max_gpus,
        "min_cores": limits.min_cores,
        "max_cores": limits.max_cores,
        "max_memory_bytes": limits.max_memory,
        "min_nodes": limits.min_nodes,
        "max_nodes": limits.max_nodes,
        "min_seconds": limits.min_time,
    }


def _gpu_type(gpu: GpuType) -> dict[str, Any]:
    return {
        "type": gpu.type,
        "model": gpu.model,
        "capability": gpu.capability,
        "memory_bytes": gpu.memory,
        "driver": gpu.driver,
    }


def estimate(found: Estimate, cluster: str | None) -> dict[str, Any]:
    """What a job costs at most."""
    return {
        "cluster": cluster,
        "partition": found.partition,
        "nodes": found.nodes,
        "tasks": found.tasks,
        "seconds": found.seconds,
        "node_hours": found.node_hours,
        "price": found.price,
        "price_unit": found.unit,
    }
