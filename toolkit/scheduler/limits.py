"""Whether a cluster can run a job, by its profile: each rule names the limit and the nearest possible request."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.scheduler.job_limits import destination, refusals
from toolkit.scheduler.nearest import nearest_options
from toolkit.scheduler.needs import array_size, describe_memory, describe_time, needs_of
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.resources import OPTIONS
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.scheduler.needs import Needs
    from toolkit.scheduler.profiles import Partition, Profile
    from toolkit.scheduler.resources import Resources

# The schedulers that give each node the same, and spread nothing over nodes by themselves.
_CHUNKS = (Scheduler.OPENPBS, Scheduler.TORQUE)
# How a user gives an option that is missing.
_EXAMPLES = {
    "array": "--array 0-9",
    "nodes": "--nodes 1",
    "tasks_per_node": "--ntasks-per-node 1",
    "cpus_per_task": "--cpus-per-task 4",
    "gpus": "--gpus 1",
    "mem": "--mem 16G",
    "time": "--time 1:00:00",
    "partition": "--partition NAME",
    "account": "--account NAME",
    "qos": "--qos NAME",
}


def check_request(profile: Profile, resources: Resources) -> tuple[Finding, ...]:
    """What the site would refuse, or let wait for ever, of a job. Empty if the profile has nothing against it."""
    return (
        *_missing(profile, resources),
        *_unknown_type(profile, resources),
        *_array(profile, resources),
        *_partition(profile, resources),
    )


def excesses(partition: Partition, needs: Needs) -> tuple[str, ...]:
    """What `partition` has against a job, each limit as the end of a sentence: `allows 5 minutes, and …`."""
    if partition.destinations:
        chosen = destination(partition, needs)
        return tuple(
            f"passes jobs on to {queue.name}, which {reason}"
            for queue in ([chosen] if chosen else partition.destinations)
            for reason in excesses(queue, needs)
        )
    return tuple(reason for rule in _RULES for reason in rule(partition, needs))


def fitting(profile: Profile, resources: Resources) -> tuple[Partition, ...]:
    """The partitions that a job with these resources could run in, smallest first: the one that gives away least."""
    needs = _needs(profile, resources)
    found = [partition for partition in profile.partitions if not excesses(partition, needs)]
    return tuple(sorted(found, key=_size))


def _needs(profile: Profile, resources: Resources) -> Needs:
    """The numbers of a job. Slurm spreads `--gpus` over nodes; a job of PBS is on one, unless it names more."""
    needs = needs_of(resources)
    return needs if profile.scheduler not in _CHUNKS else replace(needs, nodes=needs.nodes or 1)


def _size(partition: Partition) -> tuple[float, ...]:
    values = (partition.gpus, partition.cores, partition.memory, partition.max_time)
    return tuple(math.inf if value is None else value for value in values)


def _missing(profile: Profile, resources: Resources) -> Iterator[Finding]:
    for key in profile.required:
        if getattr(resources, key) is not None:
            continue
        fix = _EXAMPLES[key]
        if key == "partition" and (fits := fitting(profile, resources)):
            fix = " or ".join(f"--partition {partition.name}" for partition in fits[:3])
        yield Finding(
            "option-required",
            Severity.ERROR,
            f"cluster {profile.name} refuses a job without --{OPTIONS[key].name}",
            f"Add {fix}.",
        )


def _unknown_type(profile: Profile, resources: Resources) -> Iterator[Finding]:
    if (kind := _foreign_type(profile, resources)) is not None:
        known = [gpu.type for gpu in profile.gpu_types]
        wanted = kind.lower()
        same = next((gpu.type for gpu in profile.gpu_types if wanted in ((gpu.model or "").lower(), gpu.type)), None)
        near = f' Did you mean "{same}"?' if same else did_you_mean(kind, known)
        total = resources.gpus.count if resources.gpus else 1
        yield Finding(
            "unknown-gpu-type",
            Severity.ERROR,
            f"cluster {profile.name} has no GPU type {kind!r}; it has {', '.join(known)}.{near}",
            f"--gpus {same or known[0]}:{total}",
        )


def _foreign_type(profile: Profile, resources: Resources) -> str | None:
    """The type of the job's GPUs, if the cluster has others and not this one."""
    kind = needs_of(resources).gpu_type
    known = [gpu.type for gpu in profile.gpu_types]
    return kind if known and kind not in known else None


def _array(profile: Profile, resources: Resources) -> Iterator[Finding]:
    if resources.array is None or profile.max_tasks is None:
        return
    if (tasks := array_size(resources.array)) > profile.max_tasks:
        parts = math.ceil(tasks / profile.max_tasks)
        yield Finding(
            "request-over-limit",
            Severity.ERROR,
            f"cluster {profile.name} allows {count(profile.max_tasks, 'task')} in an array, and the job has {tasks}",
            f"Submit {parts} arrays, or let each task run several settings.",
        )
    # MaxArraySize of slurm.conf(5) bounds the numbers of the tasks too, which may begin with 0.
    elif (
        profile.scheduler is Scheduler.SLURM and max(part.last for part in resources.array.ranges) >= profile.max_tasks
    ):
        yield Finding(
            "request-over-limit",
            Severity.ERROR,
            f"cluster {profile.name} allows task numbers up to {profile.max_tasks - 1}, "
            f"and the array is {resources.array}",
            f"Begin with 0: --array 0-{tasks - 1}",
        )


def _partition(profile: Profile, resources: Resources) -> Iterator[Finding]:
    """What the partitions of the job have against it: those that it names, else the default one, else all."""
    needs = _needs(profile, resources)
    if _foreign_type(profile, resources) is not None:
        needs = replace(needs, gpu_type=None)  # that is said already
    if resources.partition is None:
        default = profile.default_partition
        if default is None:
            yield from _nowhere(profile, resources, needs)
            return
        named = [default.name]
    else:
        named = resources.partition.split(",")
    known = [partition.name for partition in profile.partitions]
    for name in named if known else ():
        if name not in known:
            shown = ", ".join(known)
            yield Finding(
                "unknown-partition",
                Severity.ERROR,
                f"cluster {profile.name} has no partition {name!r}; it has {shown}.{did_you_mean(name, known)}",
                _elsewhere(profile, resources, None),
            )
    candidates = [partition for name in named if (partition := profile.partition(name)) is not None]
    found = [(partition, excesses(partition, needs)) for partition in candidates]
    if all(over for _, over in found):  # of several partitions, Slurm takes one that can run the job
        for partition, over in found:
            yield from _over(profile, partition, over, resources)


def _nowhere(profile: Profile, resources: Resources, needs: Needs) -> Iterator[Finding]:
    """A job that names no partition, on a cluster without a default one."""
    if not profile.partitions or fitting(profile, resources):
        return
    nearest = min(profile.partitions, key=lambda partition: len(excesses(partition, needs)))
    yield from _over(profile, nearest, excesses(nearest, needs), resources)


def _over(profile: Profile, partition: Partition, over: tuple[str, ...], resources: Resources) -> Iterator[Finding]:
    fix = _elsewhere(profile, resources, partition)
    for reason in over:
        yield Finding("request-over-limit", Severity.ERROR, f"partition {partition.name} {reason}", fix)


def _elsewhere(profile: Profile, resources: Resources, partition: Partition | None) -> str:
    """The nearest requests: within the limits of `partition`, or in other ones."""
    even = profile.scheduler in _CHUNKS
    within = nearest_options(partition, resources, even=even) if partition else None
    found = [within] if within else []
    found += [f"--partition {other.name}" for other in fitting(profile, resources)[:3]]
    if not found:
        return f"No partition allows it: `ctk cluster show {profile.name}` lists the limits."
    return f"Nearest: {', or '.join(found)}"


# ---- The rules, each for one limit


def _time(partition: Partition, needs: Needs) -> Iterator[str]:
    if needs.time is not None and partition.max_time is not None and needs.time > partition.max_time:
        asked = "no time limit" if math.isinf(needs.time) else describe_time(needs.time)
        yield f"allows {describe_time(partition.max_time)}, and the job asks for {asked}"


def _nodes(partition: Partition, needs: Needs) -> Iterator[str]:
    nodes = needs.nodes or 1
    if partition.max_nodes is not None and nodes > partition.max_nodes:
        yield f"allows {count(partition.max_nodes, 'node')}, and the job asks for {nodes}"
    if partition.min_nodes is not None and nodes < partition.min_nodes:
        yield f"is for at least {count(partition.min_nodes, 'node')}, and the job asks for {nodes}"


def _gpus(partition: Partition, needs: Needs) -> Iterator[str]:
    if not needs.gpus or partition.gpus is None:
        return
    if partition.gpus == 0:
        yield f"has no GPUs, and the job asks for {needs.gpus}"
        return
    # Slurm spreads `--gpus` over as many nodes as it needs, if the job does not say how many.
    nodes = needs.nodes or min(math.ceil(needs.gpus / partition.gpus), partition.max_nodes or needs.gpus)
    if needs.gpus > nodes * partition.gpus:
        per_node = count(partition.gpus, "GPU")
        yield f"has {per_node} on a node, and the job asks for {needs.gpus} on {count(nodes, 'node')}"


def _gpu_type(partition: Partition, needs: Needs) -> Iterator[str]:
    if needs.gpu_type is not None and partition.gpu_types and needs.gpu_type not in partition.gpu_types:
        yield f"has GPUs of the type {', '.join(partition.gpu_types)}, not {needs.gpu_type}"


def _cores(partition: Partition, needs: Needs) -> Iterator[str]:
    if needs.cores is not None and partition.cores is not None and needs.cores > partition.cores:
        yield f"has {count(partition.cores, 'core')} on a node, and the job asks for {needs.cores}"


def _memory(partition: Partition, needs: Needs) -> Iterator[str]:
    if needs.memory is not None and partition.memory is not None and needs.memory > partition.memory:
        has, asked = describe_memory(partition.memory), describe_memory(needs.memory)
        yield f"has {has} of memory on a node, and the job asks for {asked}"


def _node_hours(partition: Partition, needs: Needs) -> Iterator[str]:
    nodes = needs.nodes or 1
    if partition.node_hours is None or needs.time is None or math.isinf(needs.time) or nodes == 1:
        return
    if nodes * needs.time > partition.node_hours * 3600:
        asked = f"{nodes} nodes x {describe_time(needs.time)}"
        yield f"allows {partition.node_hours} nodes x hours, and the job asks for {asked}"


_RULES: tuple[Callable[[Partition, Needs], Iterator[str]], ...] = (
    *(_time, _nodes, _gpus, _gpu_type, _cores, _memory, _node_hours, refusals),
)
