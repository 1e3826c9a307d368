"""From `NAME.toml` to Profile: every key checked, every error with file, line and what to write instead."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from toolkit.scheduler.needs import format_time
from toolkit.scheduler.profiles import GpuType, JobLimits, Modules, Partition, Profile, Proxy
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.requests import TEMPLATE_KEYS, RequestTemplate, RequestTemplates, parse_template
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import NO_TIME_LIMIT, check_module, check_partition, parse_time
from toolkit.support.errors import WrongInput
from toolkit.support.quantities import parse_size
from toolkit.support.text import did_you_mean, one_line
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolkit.support.tomlfile import TomlFile

T = TypeVar("T")

PROFILE_KEYS = (
    *("description", "scheduler", "sources", "checked", "required", "internet", "modules", "module_setup", "binds"),
    *("proxy", "no_proxy", "max_tasks", "price_unit", "arguments", "request", "partition", "gpu"),
)
PARTITION_KEYS = (
    *("name", "default", "description", "max_time", "default_time", "min_nodes", "max_nodes", "cores_per_node"),
    *("job", "destination", "memory_per_node", "gpus_per_node", "gpu_types", "max_node_hours", "price_per_node_hour"),
)
GPU_KEYS = ("type", "model", "capability", "memory_per_gpu", "driver")
JOB_KEYS = (*("min_gpus", "max_gpus", "min_cores", "max_cores", "max_memory", "min_nodes", "max_nodes", "min_time"),)
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
GPU_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_DRIVER = re.compile(r"\d{3}(\.\d{1,4}){0,2}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_HOST = re.compile(r"[A-Za-z0-9.*_:/-]+")
_UNIT = re.compile(r"[^\W\d_][\w ./-]{0,30}")
_SETUP = re.compile(r"/[A-Za-z0-9._/+-]+")


def load_profile(path: Path) -> Profile:
    """Read a profile. Raises WrongInput with file, line and key."""
    file = read_toml(path)
    table = file.content
    file.check_keys(table, PROFILE_KEYS)
    gpu_types = _unique(file, "gpu", "type", [_gpu_type(*entry) for entry in _entries(file, "gpu")])
    partitions = [_partition(*entry, gpu_types) for entry in _entries(file, "partition")]
    _refuse_two_defaults(file, partitions)
    return Profile(
        name=path.stem,
        path=path,
        scheduler=_scheduler(file),
        description=_line(file, table, "description") or "",
        sources=_texts(file, "sources"),
        checked=_matching(file, table, "checked", _DAY, "a day such as 2026-11-23"),
        required=_required(file),
        partitions=_unique(file, "partition", "name", partitions),
        gpu_types=gpu_types,
        requests=_requests(file),
        modules=_modules(file),
        binds=_binds(file),
        proxy=_proxy(file),
        internet=file.get(table, "internet", bool),
        max_tasks=_count(file, table, "max_tasks"),
        unit=_unit(file),
    )


def _scheduler(file: TomlFile) -> Scheduler:
    known = [scheduler.value for scheduler in Scheduler]
    name = _line(file, file.content, "scheduler")
    if name is None:
        file.fail("scheduler", "is missing", fix=f'Write scheduler = "…", one of {", ".join(known)}.')
    if name not in known:
        file.fail("scheduler", f"should be one of {', '.join(known)}, not {name!r}.{did_you_mean(name, known)}")
    return Scheduler(name)


def _required(file: TomlFile) -> tuple[str, ...]:
    by_name = {option.name: key for key, option in OPTIONS.items()}
    found = []
    for name in _texts(file, "required"):
        if name not in by_name:
            known = ", ".join(by_name)
            file.fail("required", f"{name!r} is not an option of a job", fix=f"Write some of these: {known}.")
        found.append(by_name[name])
    return tuple(found)


def _partition(file: TomlFile, table: Mapping[str, Any], prefix: str, gpu_types: Sequence[GpuType]) -> Partition:
    file.check_keys(table, PARTITION_KEYS, prefix)
    name = _line(file, table, "name", prefix)
    if not name:
        file.fail(f"{prefix}name", "is missing", fix='Write name = "…", as the scheduler calls the partition or queue.')
    if "," in name:
        file.fail(f"{prefix}name", f"should be the name of one partition, not {name!r}")
    types = file.get_texts(table, "gpu_types", prefix)
    for gpu_type in types:
        if gpu_type not in [known.type for known in gpu_types]:
            file.fail(
                f"{prefix}gpu_types", f"there is no GPU type {gpu_type!r}", fix=f'Add [[gpu]] with type = "{gpu_type}".'
            )
    least, most = _count(file, table, "min_nodes", prefix), _count(file, table, "max_nodes", prefix)
    if least is not None and most is not None and least > most:
        file.fail(f"{prefix}min_nodes", f"should not be more than max_nodes ({most})")
    limit, default = (_time(file, table, key, prefix) for key in ("max_time", "default_time"))
    if limit is not None and default is not None and default > limit:
        file.fail(f"{prefix}default_time", f"should not be more than max_time ({format_time(limit)})")
    return Partition(
        name=_checked(file, f"{prefix}name", lambda: check_partition(name, "the value")),
        is_default=bool(file.get(table, "default", bool, prefix)),
        description=_line(file, table, "description", prefix) or "",
        max_time=limit,
        default_time=default,
        min_nodes=least,
        max_nodes=most,
        cores=_count(file, table, "cores_per_node", prefix),
        memory=_size(file, table, "memory_per_node", prefix),
        gpus=_count(file, table, "gpus_per_node", prefix, least=0),
        job=_job_limits(file, table, prefix),
        destinations=_destinations(file, table, prefix, gpu_types),
        gpu_types=types,
        node_hours=_count(file, table, "max_node_hours", prefix),
        price=_price(file, table, prefix),
    )


def _job_limits(file: TomlFile, table: Mapping[str, Any], prefix: str) -> JobLimits:
    limits = file.get(table, "job", dict, prefix) or {}
    prefix = f"{prefix}job."
    file.check_keys(limits, JOB_KEYS, prefix)
    counts = [key for key in JOB_KEYS if key not in ("max_memory", "min_time")]
    # A queue without GPUs has max_gpus = 0.
    found = {key: _count(file, limits, key, prefix, least=int(key != "max_gpus")) for key in counts}
    return JobLimits(
        **found, max_memory=_size(file, limits, "max_memory", prefix), min_time=_time(file, limits, "min_time", prefix)
    )


def _destinations(
    file: TomlFile, table: Mapping[str, Any], prefix: str, gpu_types: Sequence[GpuType]
) -> tuple[Partition, ...]:
    """The queues of a routing queue."""
    queues = file.get(table, "destination", list, prefix) or []
    found = []
    for number, queue in enumerate(queues, 1):
        if not isinstance(queue, dict) or "destination" in queue:
            file.fail(f"{prefix}destination", "should be tables of queues that are no routing queues themselves")
        found.append(_partition(file, queue, f"{prefix}destination[{number}].", gpu_types))
    return tuple(found)


def _gpu_type(file: TomlFile, table: Mapping[str, Any], prefix: str) -> GpuType:
    file.check_keys(table, GPU_KEYS, prefix)
    name = _matching(file, table, "type", GPU_TYPE, "one word, as the scheduler calls the GPU type", prefix)
    if name is None:
        file.fail(f"{prefix}type", "is missing", fix='Write type = "…", as the scheduler calls the GPU type.')
    capability = 'the compute capability as text, such as "9.0" (nvidia-smi --query-gpu=compute_cap)'
    driver = "an NVIDIA driver version such as 535.104.05"
    return GpuType(
        type=name,
        model=_line(file, table, "model", prefix),
        capability=_matching(file, table, "capability", _CAPABILITY, capability, prefix),
        memory=_size(file, table, "memory_per_gpu", prefix),
        driver=_matching(file, table, "driver", _DRIVER, driver, prefix),
    )


def _requests(file: TomlFile) -> RequestTemplates:
    table = file.get(file.content, "request", dict) or {}
    file.check_keys(table, TEMPLATE_KEYS, "request.")
    found = {
        key: _template(file, f"request.{key}", text)
        for key in TEMPLATE_KEYS
        if (text := _line(file, table, key, "request.")) is not None
    }
    arguments = tuple(_template(file, "arguments", text) for text in _texts(file, "arguments"))
    return RequestTemplates(**found, arguments=arguments)


def _template(file: TomlFile, key: str, text: str) -> RequestTemplate:
    try:
        return parse_template(text, "the value")
    except WrongInput as error:
        file.fail(key, error.message.removeprefix("the value: "), fix=error.fix)


def _modules(file: TomlFile) -> Modules:
    names = _texts(file, "modules")
    for name in names:
        try:
            check_module(name)
        except WrongInput:
            file.fail(
                "modules", f"{name!r} is not the name of a module", fix='For example: modules = ["apptainer/1.4"]'
            )
    setup = _matching(file, file.content, "module_setup", _SETUP, "the absolute path of a file that defines `module`")
    return Modules(names, setup)


def _binds(file: TomlFile) -> tuple[str, ...]:
    binds = _texts(file, "binds")
    for bind in binds:
        if not bind.startswith("/") or "," in bind:
            file.fail(
                "binds", f"{bind!r} is not an absolute path", fix='For example: binds = ["/scratch", "/data:/data:ro"]'
            )
    return binds


def _proxy(file: TomlFile) -> Proxy | None:
    url, exceptions = _line(file, file.content, "proxy"), _texts(file, "no_proxy")
    if url is None:
        if exceptions:
            file.fail("no_proxy", "has no effect without proxy")
        return None
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or not re.fullmatch(r"[A-Za-z0-9.:/@%_\[\]-]+", url):
        file.fail("proxy", f"should be a URL such as http://proxy.example.org:3128, not {url!r}")
    if "@" in url:
        file.fail(
            "proxy",
            "contains a user name or a password, which would end up in every job script",
            fix="Remove it. A user passes such a proxy from the job's environment: ctk sbatch --env https_proxy",
        )
    for host in exceptions:
        if not _HOST.fullmatch(host):
            file.fail("no_proxy", f"{host!r} is neither a host nor a network")
    return Proxy(url, exceptions)


def _unit(file: TomlFile) -> str | None:
    unit = _matching(file, file.content, "price_unit", _UNIT, "a word such as points")
    priced = any("price_per_node_hour" in table for _, table, _ in _entries(file, "partition"))
    if priced and unit is None:
        file.fail("price_unit", "is missing, and a partition has a price", fix='For example: price_unit = "points"')
    return unit


def _price(file: TomlFile, table: Mapping[str, Any], prefix: str) -> float | None:
    value = table.get("price_per_node_hour")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        file.fail(f"{prefix}price_per_node_hour", f"should be a number of at least 0, not {value!r}")
    return float(value)


# ---- Values of every kind


def _entries(file: TomlFile, key: str) -> list[tuple[TomlFile, dict[str, Any], str]]:
    """The tables of `[[key]]`, each with the beginning of its keys for errors."""
    tables = file.get(file.content, key, list) or []
    for table in tables:
        if not isinstance(table, dict):
            file.fail(key, f"should be [[{key}]] tables, not {table!r}")
    return [(file, table, f"{key}[{number}].") for number, table in enumerate(tables, 1)]


def _unique(file: TomlFile, key: str, name: str, found: Sequence[T]) -> tuple[T, ...]:
    names = [getattr(entry, name) for entry in found]
    for number, value in enumerate(names, 1):
        if value in names[: number - 1]:
            file.fail(f"{key}[{number}].{name}", f"{value!r} is there twice", fix="Remove one of the two.")
    return tuple(found)


def _refuse_two_defaults(file: TomlFile, partitions: Sequence[Partition]) -> None:
    marked = [number for number, partition in enumerate(partitions, 1) if partition.is_default]
    if len(marked) > 1:
        file.fail(f"partition[{marked[1]}].default", f"{partitions[marked[0] - 1].name} is the default already")


def _line(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str = "") -> str | None:
    value: str | None = file.get(table, key, str, prefix)
    return value if value is None else _checked(file, f"{prefix}{key}", lambda: one_line(value, "the value"))


def _texts(file: TomlFile, key: str) -> tuple[str, ...]:
    values = file.get_texts(file.content, key)
    return tuple(_checked(file, key, partial(one_line, value, "the value")) for value in values)


def _matching(
    file: TomlFile, table: Mapping[str, Any], key: str, form: re.Pattern[str], right: str, prefix: str = ""
) -> str | None:
    value = _line(file, table, key, prefix)
    if value is not None and not form.fullmatch(value):
        file.fail(f"{prefix}{key}", f"should be {right}, not {value!r}")
    return value


def _count(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str = "", *, least: int = 1) -> int | None:
    value: int | None = file.get(table, key, int, prefix)
    if value is not None and not least <= value < 1_000_000_000:
        file.fail(f"{prefix}{key}", f"should be at least {least}, not {value}")
    return value


def _time(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str) -> int | None:
    text = _line(file, table, key, prefix)
    if text is None:
        return None
    seconds = _checked(file, f"{prefix}{key}", lambda: parse_time(text, "the value"))
    if seconds == NO_TIME_LIMIT:
        file.fail(
            f"{prefix}{key}", f"should be a time such as 24:00:00, not {text!r}", fix="For no limit, remove the key."
        )
    return seconds


def _size(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str) -> int | None:
    text = _line(file, table, key, prefix)
    return None if text is None else _checked(file, f"{prefix}{key}", lambda: parse_size(text, "the value"))


def _checked(file: TomlFile, key: str, check: Callable[[], T]) -> T:
    """What `check` returns; its error names file, line and key."""
    try:
        return check()
    except WrongInput as error:
        file.fail(key, error.message, fix=error.fix)
