"""From what PBS says of its queues and vnodes to the partitions of a user: pure functions of its programs' output.

Sources: `svr_chkque` and `chk_resc_limits` in svr_jobfunc.c, `acl_check` in attr_fn_acl.c of OpenPBS 23.06, and a real
server of that version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.scheduler.detection import is_partition, is_type, seconds_of
from toolkit.scheduler.numbers import leading, whole
from toolkit.scheduler.pbs import is_usable, mebibytes, tables
from toolkit.scheduler.profiles import JobLimits, Partition
from toolkit.scheduler.requests import RequestTemplate
from toolkit.scheduler.states import HostFacts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_MIB = 1024**2
_ATTRIBUTE = re.compile(r"\s*([\w.]+)\s*= ?(.*)")
# What sites call the type of the GPUs of a vnode: a custom resource, which PBS does not have by itself.
_GPU_TYPES = ("gpu_type", "gpu_model", "gputype", "gpu_name", "gpu_kind")
# Resources of a chunk that are amounts; what else a queue gives to each chunk selects vnodes.
_AMOUNTS = ("ncpus", "ngpus", "mem", "vmem", "mpiprocs", "ompthreads", "nmics", "naccelerators", "accelerator_memory")
_LIMITED = ("walltime", "ngpus", "ncpus", "mem", "nodect")  # that a profile can hold
_SHARED_LIMITS = re.compile(r"(max_run|max_queued|max_user_run|max_group_run|max_running|max_queuable)\w*(\.\w+)?")

Attributes = dict[str, str]


@dataclass(frozen=True, slots=True)
class Vnode:
    """A vnode of PBS, with the host that it is a part of. `queue` is the one that it belongs to, empty for none."""

    name: str
    host: str
    resources: Mapping[str, str]
    queue: str = ""
    usable: bool = True


@dataclass(frozen=True, slots=True)
class Site:
    """What PBS says: attributes of each queue and of the server, and the vnodes; and who asks."""

    queues: Mapping[str, Attributes]
    server: Attributes
    vnodes: tuple[Vnode, ...]
    user: str
    groups: Collection[str]


def parse_attributes(text: str, kind: str) -> dict[str, Attributes]:
    """The objects of `qstat -Q -f` (`kind` is Queue) or `qstat -B -f` (Server); OpenPBS and Torque print the same."""
    found = {}
    joined = re.sub(r"\n\t", "", text)  # a long line goes on behind a tab
    for block in re.split(rf"^{kind}: ", joined, flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        matches = (_ATTRIBUTE.fullmatch(line) for line in rest.splitlines())
        found[name.strip()] = {match[1]: match[2].strip() for match in matches if match}
    return found


def parse_vnodes(text: str) -> tuple[Vnode, ...]:
    """The vnodes of OpenPBS's `pbsnodes -a -v -F json`. Raises ProgramFailed if the text is not such a document."""
    found = []
    for name, node in tables(text, "nodes"):
        given = node.get("resources_available")
        available = {key: str(value) for key, value in given.items()} if isinstance(given, dict) else {}
        available.setdefault("ncpus", str(node.get("pcpus", "")))
        host = available.get("host", name)
        found.append(Vnode(name, host, available, str(node.get("queue", "")), is_usable(str(node.get("state", "")))))
    return tuple(found)


def vnodes_of(hosts: Sequence[HostFacts]) -> tuple[Vnode, ...]:
    """Torque's nodes in the same form."""
    return tuple(
        Vnode(
            host.name,
            host.name,
            {"ncpus": str(host.cpus), "ngpus": str(host.gpus), "mem": f"{host.memory}mb"},
            usable=host.usable,
        )
        for host in hosts
    )


def hosts_of(vnodes: Sequence[Vnode]) -> tuple[HostFacts, ...]:
    """The hosts with the sum of their vnodes: a chunk is on one host, over several of its vnodes if need be."""
    by_host: dict[str, list[Vnode]] = {}
    for vnode in vnodes:
        by_host.setdefault(vnode.host, []).append(vnode)
    return tuple(
        HostFacts(
            name,
            cpus=_sum(parts, "ncpus"),
            memory=sum(mebibytes(part.resources.get("mem", "")) for part in parts),
            gpus=_sum(parts, "ngpus"),
            gpu_type=next((kind for part in parts if (kind := _gpu_type(part)) and _sum([part], "ngpus")), None),
            usable=any(part.usable for part in parts),
        )
        for name, parts in by_host.items()
    )


def _sum(parts: Sequence[Vnode], key: str) -> int:
    return sum(leading(part.resources.get(key)) or 0 for part in parts)


def _gpu_type(vnode: Vnode) -> str | None:
    return next((value for name in _GPU_TYPES if is_type(value := vnode.resources.get(name))), None)


def type_request(vnodes: Sequence[Vnode]) -> RequestTemplate | None:
    """How a chunk asks for a GPU type: by the resource of the vnodes that has it; None if none has."""
    name = next((name for name in _GPU_TYPES if any(is_type(vnode.resources.get(name)) for vnode in vnodes)), None)
    return RequestTemplate(f"-l {name}={{type}}") if name else None


# ---- Queues


def partitions_of(site: Site) -> tuple[Partition, ...]:
    """The queues that the user may submit to, with their limits."""
    found = []
    for name in site.queues:
        if is_partition(name) and _is_open(site, name) and not _says(site.queues[name], "from_route_only"):
            partition = _partition(site, name)
            if not _is_route(site.queues[name]) or partition.destinations:
                found.append(partition)
    return tuple(found)


def _is_route(queue: Attributes) -> bool:
    return queue.get("queue_type", "").lower().startswith("r")


def _says(queue: Attributes, key: str) -> bool:
    return queue.get(key, "").lower() == "true"


def _is_open(site: Site, name: str) -> bool:
    """Whether the queue takes jobs of the user, and starts them."""
    queue = site.queues[name]
    if queue.get("enabled", "True").lower() == "false" or queue.get("started", "True").lower() == "false":
        return False
    if _says(queue, "acl_user_enable") and not _listed(queue.get("acl_users", ""), {site.user}):
        return False
    return not _says(queue, "acl_group_enable") or _listed(queue.get("acl_groups", ""), site.groups)


def _listed(acl: str, names: Collection[str]) -> bool:
    """Whether an access list names one of `names`: its first entry that matches decides; `-` denies, `+` allows.

    The host of `user@host` cannot be compared here: what a server calls this host is not known.
    """
    default = False
    for entry in filter(None, (part.strip() for part in acl.split(","))):
        if entry in ("+", "-"):
            default = entry == "+"
        elif entry.lstrip("+-").partition("@")[0] in names:
            return not entry.startswith("-")
    return default


def _partition(site: Site, name: str, above: tuple[str, ...] = ()) -> Partition:
    queue = site.queues[name]
    default = name == site.server.get("default_queue") and not above
    if _is_route(queue):
        destinations = tuple(_destinations(site, name, above))
        names = ", ".join(found.name for found in destinations)
        return Partition(name, is_default=default, description=f"passes jobs on to {names}", destinations=destinations)
    hosts = hosts_of(_vnodes(site, name))
    limits = _job_limits(site, name)
    limit, usual = (seconds_of(_value(site, name, f"{key}.walltime")) for key in ("resources_max", "resources_default"))
    memory = max((host.memory for host in hosts), default=0)
    return Partition(
        name,
        is_default=default,
        max_time=limit,
        default_time=usual if limit is None or usual is None else min(usual, limit),
        max_nodes=min(len(hosts), limits.max_nodes or len(hosts)) or None,
        cores=max((host.cpus for host in hosts), default=0) or None,
        memory=memory * _MIB or None,
        gpus=max((host.gpus for host in hosts), default=0),
        job=limits,
        gpu_types=tuple(sorted({host.gpu_type for host in hosts if host.gpu_type})),
    )


def _destinations(site: Site, name: str, above: tuple[str, ...]) -> Iterator[Partition]:
    """The queues of this server that the routing queue passes a job of the user on to, in its order."""
    for destination in site.queues[name].get("route_destinations", "").split(","):
        target = destination.partition("@")[0].strip()
        if target in (name, *above) or target not in site.queues or not is_partition(target):
            continue
        if _is_open(site, target):
            found = _partition(site, target, (*above, name))
            yield from found.destinations or (
                (replace(found, is_default=False),) if not _is_route(site.queues[target]) else ()
            )


def _value(site: Site, name: str, key: str) -> str | None:
    """The value of the queue, else of the server."""
    return site.queues[name].get(key, site.server.get(key))


def _job_limits(site: Site, name: str) -> JobLimits:
    def number(key: str) -> int | None:
        return whole(_value(site, name, key))

    memory = mebibytes(_value(site, name, "resources_max.mem") or "")
    return JobLimits(
        min_gpus=whole(site.queues[name].get("resources_min.ngpus")) or None,
        max_gpus=number("resources_max.ngpus"),
        min_cores=whole(site.queues[name].get("resources_min.ncpus")) or None,
        max_cores=number("resources_max.ncpus") or None,
        max_memory=memory * _MIB or None,
        min_nodes=whole(site.queues[name].get("resources_min.nodect")) or None,
        max_nodes=number("resources_max.nodect") or None,
        min_time=seconds_of(site.queues[name].get("resources_min.walltime")),
    )


def _vnodes(site: Site, name: str) -> list[Vnode]:
    """The vnodes that a chunk in this queue can be on.

    These are those that belong to the queue, or to none where it has none of its own; and of them, those with what the
    queue gives to each chunk (`default_chunk.Qlist`).
    """
    own = [vnode for vnode in site.vnodes if vnode.queue == name]
    found = own or [vnode for vnode in site.vnodes if not vnode.queue]
    for key, value in site.queues[name].items():
        kind, _, resource = key.partition(".")
        if kind == "default_chunk" and resource not in _AMOUNTS:
            found = [vnode for vnode in found if value in vnode.resources.get(resource, "").split(",")]
    return found


# ---- What a profile cannot say


def notes_of(site: Site) -> Iterator[str]:
    """What a user should know besides the partitions."""
    default = site.server.get("default_queue", "")
    taken = {partition.name for partition in partitions_of(site)}
    if default in site.queues and default not in taken:
        yield f"The default queue is {default}, which does not take your jobs: name one with --partition."
    closed = [name for name in site.queues if is_partition(name) and name not in taken]
    if closed:
        yield f"Queues that take no jobs of yours directly (disabled, stopped, lists, routes): {', '.join(closed)}."
    for name, queue in site.queues.items():
        if not is_partition(name) or not _is_open(site, name):
            continue
        remote = [target for target in queue.get("route_destinations", "").split(",") if "@" in target]
        if remote:
            yield f"{name} also passes jobs on to queues of other servers, whose limits are not known here."
        if _says(queue, "acl_host_enable"):
            yield f"{name} takes jobs from some hosts only; whether this host is one of them is not known here."
        others = [
            key
            for key in queue
            if key.startswith(("resources_max.", "resources_min.")) and key.partition(".")[2] not in _LIMITED
        ]
        others += [key for key in queue if _SHARED_LIMITS.fullmatch(key)]
        if others:
            yield f"{name} has limits that are not in this profile: {', '.join(others)} (qstat -Q -f {name})."
        if len({(host.cpus, host.gpus, host.memory, host.gpu_type) for host in hosts_of(_vnodes(site, name))}) > 1:
            yield f"The nodes of {name} differ: its limits are those of the largest, and there may be few of these."
    if limits := [key for key in site.server if _SHARED_LIMITS.fullmatch(key)]:
        yield f"The server has limits that are not in this profile: {', '.join(limits)} (qstat -B -f)."
