"""From what a scheduler says of itself to a cluster profile: pure functions of its programs' output."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.scheduler.numbers import decimal, leading, whole
from toolkit.scheduler.profile_file import GPU_TYPE
from toolkit.scheduler.profiles import GpuType, Partition, Profile
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates
from toolkit.scheduler.values import NO_TIME_LIMIT, check_partition, is_name, parse_time
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TypeGuard

    from toolkit.scheduler.slurm_nodes import Partition as SlurmPartition
    from toolkit.scheduler.states import HostFacts

_MIB = 1024**2
_FIELD = re.compile(r"\s*([\w.]+)\s*= ?(.*)")
_GPU_RESOURCES = ("gpu", "gpus", "ngpus", "gpu_count", "num_gpu", "num_gpus", "nvidia_gpu")


@dataclass(frozen=True, slots=True)
class Queue:
    """A partition or a queue, as its scheduler describes it. `memory` is in MiB; None: no limit, or it is unknown."""

    name: str
    is_default: bool = False
    max_time: int | None = None
    default_time: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    cores: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Detected:
    """What the programs of a scheduler say. `programs` are those that were asked, `notes` what a user should know.

    `partitions` are those of a scheduler whose queues say more than Queue holds; they come in place of `queues`.
    """

    scheduler: Scheduler
    programs: tuple[str, ...]
    queues: tuple[Queue, ...]
    hosts: tuple[HostFacts, ...]
    name: str | None = None
    max_tasks: int | None = None
    required: tuple[str, ...] = ()
    requests: RequestTemplates = RequestTemplates()  # noqa: RUF009 - it is frozen
    notes: tuple[str, ...] = ()
    partitions: tuple[Partition, ...] = ()


def profile_from(found: Detected, path: Path, day: str) -> Profile:
    """The profile of what was found, to be written to `path` on `day` (ISO)."""
    kinds = sorted({str(host.gpu_type) for host in found.hosts if is_type(host.gpu_type)})
    return Profile(
        name=path.stem,
        path=path,
        scheduler=found.scheduler,
        description="",
        sources=(f"{', '.join(found.programs)} on a host of the cluster",),
        checked=day,
        required=found.required,
        partitions=found.partitions or _partitions(found),
        gpu_types=tuple(GpuType(kind) for kind in kinds),
        requests=found.requests,
        max_tasks=found.max_tasks,
    )


def profile_name(found: Detected) -> str:
    """The name of the cluster as a file can have it, else that of its scheduler."""
    return re.sub(r"[^a-z0-9._-]+", "-", (found.name or "").lower()).strip(".-_")[:64] or found.scheduler.value


def comments(found: Detected) -> tuple[str, ...]:
    """What stands at the beginning of the file: its origin, and what a user should add."""
    return (
        f"Written by `ctk cluster detect` from {', '.join(found.programs)}.",
        *found.notes,
        "",
        "Add what the scheduler does not say, where you know it:",
        "  internet = false            # compute nodes do not reach the internet",
        '  modules = ["apptainer"]     # what a job has to load',
        '  binds = ["/scratch"]        # directories that every container is to see',
        '  required = ["account"]      # options without which the site refuses a job',
        '  capability = "7.0"          # in [[gpu]]: nvidia-smi --query-gpu=compute_cap --format=csv',
        '  driver = "535.104.05"       # in [[gpu]]: cat /sys/module/nvidia/version',
    )


def _partitions(found: Detected) -> tuple[Partition, ...]:
    """Each partition once, and at most one default."""
    queues: dict[str, Queue] = {}
    for queue in found.queues:
        if is_partition(queue.name):
            queues.setdefault(queue.name, queue)
    default = next((name for name, queue in queues.items() if queue.is_default), None)
    of_slots = found.scheduler is Scheduler.GRID_ENGINE  # a site may have more slots on a host than it has cores
    return tuple(
        _partition(replace(queue, is_default=name == default), found.hosts, of_slots=of_slots)
        for name, queue in queues.items()
    )


def _partition(queue: Queue, hosts: Sequence[HostFacts], *, of_slots: bool) -> Partition:
    """The partition with the limits of the largest of its nodes: a request that fits one of them can start."""
    inside = [host for host in hosts if queue.name in host.partitions]
    cores = max((host.cpus for host in inside), default=0) or None
    cores = queue.cores or cores if of_slots else _least(cores, queue.cores)
    memory = _least(max((host.memory for host in inside), default=0) or None, queue.memory)
    return Partition(
        name=queue.name,
        is_default=queue.is_default,
        max_time=queue.max_time,
        default_time=None if queue.default_time is None else _least(queue.default_time, queue.max_time),
        min_nodes=None if inside and (queue.min_nodes or 0) > len(inside) else queue.min_nodes,
        max_nodes=_least(len(inside) or None, queue.max_nodes),
        cores=cores,
        memory=None if memory is None else memory * _MIB,
        gpus=max(host.gpus for host in inside) if inside else None,
        gpu_types=tuple(sorted({str(host.gpu_type) for host in inside if is_type(host.gpu_type)})),
    )


def is_partition(name: str) -> bool:
    """Whether a job can name this partition, and a profile can hold it."""
    try:
        return is_name(name) and "," not in check_partition(name)
    except WrongInput:
        return False


def is_type(name: str | None) -> TypeGuard[str]:
    """Whether a job can name this GPU type, and a profile can hold it."""
    return name is not None and is_name(name) and GPU_TYPE.fullmatch(name) is not None


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)


def seconds_of(text: str | None) -> int | None:
    """Seconds of a limit in any scheduler's form (`1-00:00:00`, `24:00:00`, `3600`); None for no limit.

    A bare number is in seconds: only Slurm means minutes by it, and Slurm's programs do not print it.
    """
    if text is None or not text.strip() or text.strip().upper() in ("UNLIMITED", "INFINITY", "INFINITE", "NONE"):
        return None
    if (seconds := whole(text.strip())) is not None:
        return seconds or None
    try:
        seconds = parse_time(text.strip())
    except WrongInput:
        return None
    return None if seconds == NO_TIME_LIMIT else seconds


# ---- Slurm


def slurm_queues(partitions: Sequence[SlurmPartition]) -> tuple[Queue, ...]:
    """The partitions that are up."""
    return tuple(
        Queue(
            partition.name,
            partition.is_default,
            seconds_of(partition.max_time),
            seconds_of(partition.default_time),
            partition.min_nodes if (partition.min_nodes or 0) > 1 else None,
            partition.max_nodes,
            partition.max_cpus,
            partition.max_memory,
        )
        for partition in partitions
        if partition.is_up
    )


def slurm_settings(text: str) -> dict[str, str]:
    """`scontrol show config`: one `Key = value` a line."""
    return {match[1]: match[2].strip() for line in text.splitlines() if (match := _FIELD.fullmatch(line))}


def slurm_accounts(text: str) -> tuple[str, ...]:
    """The accounts in `sacctmgr --noheader --parsable2 show associations format=account`."""
    return tuple(dict.fromkeys(name for line in text.splitlines() if is_name(name := line.strip())))


# ---- Grid Engine


def grid_engine_table(text: str) -> dict[str, str]:
    """`qconf -sq QUEUE` or `-sp PE`: a key and a value a line; a backslash at its end continues a line."""
    joined = re.sub(r"\\\n\s*", "", text)
    pairs = (line.partition(" ") for line in joined.splitlines())
    return {key: value.strip() for key, _, value in pairs if key}


def grid_engine_queue(text: str) -> Queue | None:
    """The queue of `qconf -sq QUEUE`; None if the text is none. Its time limit is `h_rt`, else `s_rt`."""
    fields = grid_engine_table(text)
    if "qname" not in fields:
        return None
    # `INFINITY,[n1=24:00:00]`: the first value holds for all hosts that are not named.
    limits = [seconds_of(fields.get(key, "").partition(",")[0]) for key in ("h_rt", "s_rt")]
    slots = fields.get("slots", "")
    cores = None if "[" in slots else leading(slots)
    return Queue(fields["qname"], max_time=next((limit for limit in limits if limit), None), cores=cores or None)


def grid_engine_host_gpus(text: str) -> int | None:
    """The GPUs of a host by `complex_values` in `qconf -se HOST`; None if it names none.

    `qhost -F` prints what is left of a consumable while jobs run (seen with 8.1.9).
    """
    values = grid_engine_table(text).get("complex_values", "")
    pairs = [part.strip().partition("=")[::2] for part in values.split(",")]
    counts = [int(number) for name, value in pairs if name in _GPU_RESOURCES and (number := decimal(value)) is not None]
    return max(counts, default=None)


def grid_engine_environments(fields: Sequence[dict[str, str]]) -> RequestTemplate | None:
    """The request of cores: the parallel environment that keeps all slots on one host, of several the first."""
    names = sorted(
        found["pe_name"]
        for found in fields
        if found.get("allocation_rule") == "$pe_slots"
        and re.fullmatch(r"[A-Za-z0-9._-]{1,255}", found.get("pe_name", ""))
    )
    preferred = next(
        (name for name in names if name in ("smp", "threaded", "openmp", "shm")), names[0] if names else None
    )
    return RequestTemplate(f"-pe {preferred} {{slots}}") if preferred else None


def grid_engine_gpus(text: str) -> RequestTemplate | None:
    """The request of GPUs, by the complexes of `qconf -sc`: name, shortcut, type, relop, requestable, consumable, ….

    Of a consumable `YES`, a job gets the number for each of its slots; of `JOB` or `HOST`, once (complex(5); seen with
    8.1.9).
    """
    for line in text.splitlines():
        words = line.split()
        if len(words) < 6 or line.startswith("#"):
            continue
        name, _, kind, _, requestable, consumable = words[:6]
        if (
            name.lower() in _GPU_RESOURCES
            and kind in ("INT", "DOUBLE", "RSMAP")
            and requestable != "NO"
            and consumable != "NO"
        ):
            return RequestTemplate(f"-l {name}={{{'slot_gpus' if consumable in ('YES', 'y') else 'count'}}}")
    return None
