"""The text of a cluster profile: what `ctk cluster detect` writes, and `load_profile` reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from toolkit.scheduler.needs import format_time
from toolkit.scheduler.profile_file import JOB_KEYS
from toolkit.scheduler.requests import TEMPLATE_KEYS
from toolkit.scheduler.resources import OPTIONS
from toolkit.support.text import escape_hidden_controls, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.scheduler.profiles import GpuType, JobLimits, Partition, Profile

_UNITS = (("T", 1024**4), ("G", 1024**3), ("M", 1024**2), ("K", 1024))


def profile_text(profile: Profile, comments: Sequence[str] = ()) -> str:
    """The whole file, with `comments` at its beginning."""
    requests = profile.requests
    templates = {key: template.text for key in TEMPLATE_KEYS if (template := getattr(requests, key)) is not None}
    lines = [f"# {printable(comment)}".rstrip() for comment in comments]
    lines += _assignments(_top(profile))
    lines += ["", "[request]", *_assignments(templates)] if templates else []
    for gpu in profile.gpu_types:
        lines += ["", "[[gpu]]", *_assignments(_gpu(gpu))]
    for partition in profile.partitions:
        lines += ["", "[[partition]]", *_assignments(_partition(partition))]
        for queue in partition.destinations:
            lines += ["", "[[partition.destination]]", *_assignments(_partition(queue))]
    return "\n".join(lines) + "\n"


def _top(profile: Profile) -> dict[str, Any]:
    return {
        "description": profile.description,
        "scheduler": profile.scheduler.value,
        "sources": list(profile.sources),
        "checked": profile.checked,
        "required": [OPTIONS[key].name for key in profile.required],
        "internet": profile.internet,
        "modules": list(profile.modules.names),
        "module_setup": profile.modules.setup,
        "binds": list(profile.binds),
        "proxy": profile.proxy.url if profile.proxy else None,
        "no_proxy": list(profile.proxy.exceptions) if profile.proxy else None,
        "max_tasks": profile.max_tasks,
        "arguments": [template.text for template in profile.requests.arguments],
        "price_unit": profile.unit,
    }


def _partition(partition: Partition) -> dict[str, Any]:
    return {
        "name": partition.name,
        "default": partition.is_default or None,
        "description": partition.description,
        "max_time": None if partition.max_time is None else format_time(partition.max_time),
        "default_time": None if partition.default_time is None else format_time(partition.default_time),
        "min_nodes": partition.min_nodes,
        "max_nodes": partition.max_nodes,
        "cores_per_node": partition.cores,
        "memory_per_node": _size(partition.memory),
        "gpus_per_node": partition.gpus,
        "job": _job(partition.job),
        "gpu_types": list(partition.gpu_types),
        "max_node_hours": partition.node_hours,
        "price_per_node_hour": partition.price,
    }


def _job(limits: JobLimits) -> dict[str, Any]:
    found = {key: getattr(limits, key) for key in JOB_KEYS}
    found["max_memory"] = _size(limits.max_memory)
    found["min_time"] = None if limits.min_time is None else format_time(limits.min_time)
    return {key: value for key, value in found.items() if value is not None}


def _gpu(gpu: GpuType) -> dict[str, Any]:
    return {
        "type": gpu.type,
        "model": gpu.model,
        "capability": gpu.capability,
        "memory_per_gpu": _size(gpu.memory),
        "driver": gpu.driver,
    }


def _size(size: int | None) -> str | None:
    """`16G`, `1500M`: the largest unit that leaves a whole number."""
    if size is None:
        return None
    unit, factor = next(((unit, factor) for unit, factor in _UNITS if size and size % factor == 0), ("", 1))
    return f"{size // factor}{unit}"


def _assignments(table: dict[str, Any]) -> list[str]:
    """A line for each value that is there; empty texts and lists are left out."""
    return [f"{key} = {_value(value)}" for key, value in table.items() if value not in (None, "", [], {})]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(inner)}' for key, inner in value.items())} }}"
    # TOML's basic strings have the escapes of JSON, and DEL has to be escaped as well.
    return escape_hidden_controls(json.dumps(value, ensure_ascii=False)).replace("\x7f", "\\u007f")
