"""Ask the scheduler of this host about itself: partitions, limits, nodes and GPUs."""

from __future__ import annotations

import contextlib
import getpass
import grp
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.scheduler import detection, grid_engine, pbs, pbs_site, slurm_nodes
from toolkit.scheduler.detection import Detected
from toolkit.scheduler.environment import clean_environment
from toolkit.scheduler.numbers import whole
from toolkit.scheduler.programs import Scheduler, host_scheduler
from toolkit.scheduler.requests import RequestTemplates
from toolkit.scheduler.values import is_name
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.processes import run_contained
from toolkit.support.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.scheduler.states import HostFacts

_TIMEOUT = 60.0  # seconds
_MAX_COUNT = 10**9
_MAX_LISTED = 50  # accounts in the comment of a profile


def detect(scheduler: Scheduler | None = None) -> Detected:
    """What `scheduler`, by default the one of this host, says of itself.

    Raises MissingOnHost if this host has none, ProgramFailed if its programs fail or print what ctk cannot read.
    """
    scheduler = scheduler or host_scheduler()
    if scheduler is None:
        raise MissingOnHost(
            "this host has no scheduler: there is neither sinfo nor qstat",
            fix="Run it on the login node of the cluster. `ctk lab up` starts a practice cluster on this machine.",
            code="no-scheduler",
        )
    found = _with_names(_ASK[scheduler]())
    if not found.queues or not found.hosts:
        missing = "nodes" if found.queues else "partitions or queues that are up"
        raise ProgramFailed(
            f"{', '.join(found.programs)} printed no {missing}",
            fix="If this host has several schedulers, name the right one: --scheduler slurm, sge, pbs or torque.",
            code="scheduler-output",
        )
    return found


def _with_names(found: Detected) -> Detected:
    """What was found, without queues and nodes whose names cannot be names."""
    return replace(
        found,
        queues=tuple(queue for queue in found.queues if is_name(queue.name)),
        hosts=tuple(host for host in found.hosts if is_name(host.name)),
        name=shorten(found.name) if found.name else None,
    )


def _names(text: str) -> list[str]:
    """The names that a program of Grid Engine listed, for the command lines of the next questions."""
    return [name for name in text.split() if is_name(name)]


def _ask(*argv: str, env: Mapping[str, str | None] | None = None) -> str:
    what = f"asking the scheduler with {argv[0]}"
    return run_contained(argv, env=env, timeout=_TIMEOUT).require(what).stdout


def _ask_slurm() -> Detected:
    env = clean_environment()
    partitions = slurm_nodes.parse_partitions(_ask("scontrol", "show", "partition", "--oneliner", env=env))
    hosts = slurm_nodes.parse_sinfo(
        _ask("sinfo", "--all", "--Node", "--noheader", f"--format={slurm_nodes.SINFO_FORMAT}", env=env)
    )
    settings = detection.slurm_settings(_ask("scontrol", "show", "config", env=env))
    accounts, default = _accounts(env) if shutil.which("sacctmgr") else ((), True)
    tasks = whole(settings.get("MaxArraySize")) or 0
    listed = ", ".join([*accounts[:_MAX_LISTED], *(["…"] if len(accounts) > _MAX_LISTED else [])])
    notes = (f"Your accounts: {listed}. Name one with --account, or in [job] of a recipe.",)
    return Detected(
        Scheduler.SLURM,
        ("sinfo", "scontrol", *(("sacctmgr",) if accounts else ())),
        detection.slurm_queues(partitions),
        hosts,
        name=settings.get("ClusterName"),
        max_tasks=tasks if 1 < tasks < _MAX_COUNT else None,
        required=() if default else ("account",),
        notes=notes if accounts else (),
    )


def _accounts(env: Mapping[str, str | None]) -> tuple[tuple[str, ...], bool]:
    """The accounts of this user, and whether a job without --account has one. Empty without an accounting database."""
    user = getpass.getuser()
    words = ("sacctmgr", "--noheader", "--parsable2", "show")
    listed = run_contained([*words, "associations", f"user={user}", "format=account"], env=env, timeout=_TIMEOUT)
    if not listed.ok:
        return (), True
    chosen = run_contained([*words, "user", user, "format=defaultaccount"], env=env, timeout=_TIMEOUT)
    accounts = detection.slurm_accounts(listed.stdout)
    return accounts, not accounts or bool(chosen.stdout.strip())


def _ask_grid_engine() -> Detected:
    names = _names(_ask("qconf", "-sql"))
    queues = [detection.grid_engine_queue(_ask("qconf", "-sq", name)) for name in names]
    hosts = tuple(map(_with_all_gpus, grid_engine.parse_qhost(_ask("qhost", "-F", "-q"))))
    listed = run_contained(["qconf", "-spl"], timeout=_TIMEOUT)  # exits with 1 if there is no parallel environment
    environments = [
        detection.grid_engine_table(_ask("qconf", "-sp", name)) for name in (_names(listed.stdout) if listed.ok else ())
    ]
    return Detected(
        Scheduler.GRID_ENGINE,
        ("qconf", "qhost"),
        tuple(queue for queue in queues if queue is not None),
        hosts,
        requests=RequestTemplates(
            cores=detection.grid_engine_environments(environments),
            gpus=detection.grid_engine_gpus(_ask("qconf", "-sc")),
        ),
    )


def _with_all_gpus(host: HostFacts) -> HostFacts:
    """The host with the GPUs that it has, of which `qhost` prints those that no job uses now."""
    if not is_name(host.name):
        return host
    shown = run_contained(["qconf", "-se", host.name], timeout=_TIMEOUT)
    gpus = detection.grid_engine_host_gpus(shown.stdout) if shown.ok else None
    return host if gpus is None else replace(host, gpus=gpus)


def user_groups() -> frozenset[str]:
    """The names of the groups of this process."""
    found = set()
    for number in {os.getegid(), *os.getgroups()}:
        with contextlib.suppress(KeyError):  # a group without a name
            found.add(grp.getgrgid(number).gr_name)
    return frozenset(found)


def _ask_openpbs() -> Detected:
    return _pbs(Scheduler.OPENPBS, pbs_site.parse_vnodes(_ask("pbsnodes", "-a", "-v", "-F", "json")))


def _ask_torque() -> Detected:
    return _pbs(Scheduler.TORQUE, pbs_site.vnodes_of(pbs.parse_nodes_xml(_ask("pbsnodes", "-x"))))


def _pbs(scheduler: Scheduler, vnodes: tuple[pbs_site.Vnode, ...]) -> Detected:
    queues = pbs_site.parse_attributes(_ask("qstat", "-Q", "-f"), "Queue")
    servers = pbs_site.parse_attributes(run_contained(["qstat", "-B", "-f"], timeout=_TIMEOUT).stdout, "Server")
    server = next(iter(servers.values()), {})
    site = pbs_site.Site(queues, server, vnodes, getpass.getuser(), user_groups())
    partitions = pbs_site.partitions_of(site)
    return Detected(
        scheduler,
        ("pbsnodes", "qstat"),
        tuple(detection.Queue(partition.name) for partition in partitions),
        pbs_site.hosts_of(vnodes),
        requests=RequestTemplates(gpu_type=pbs_site.type_request(vnodes)),
        max_tasks=whole(server.get("max_array_size")) or None,
        notes=tuple(pbs_site.notes_of(site)),
        partitions=partitions,
    )


_ASK: dict[Scheduler, Callable[[], Detected]] = {
    Scheduler.SLURM: _ask_slurm,
    Scheduler.GRID_ENGINE: _ask_grid_engine,
    Scheduler.OPENPBS: _ask_openpbs,
    Scheduler.TORQUE: _ask_torque,
}
