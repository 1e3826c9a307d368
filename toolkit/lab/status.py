"""The state of a lab at one moment, and the findings about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.lab.cluster import Condition, condition
from toolkit.lab.observe import FinishedJob, Node, QueuedJob, finished_jobs, nodes, queue
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.lab.registry import Lab

_NO_PMIX = "can not load PMIx library"  # what slurmd 22.05 logs when it starts


@dataclass(frozen=True, slots=True)
class Status:
    """The observed state of a lab. A lab that is not up has no nodes and no queue, but may have finished jobs."""

    lab: Lab
    condition: Condition
    nodes: tuple[Node, ...]
    queue: tuple[QueuedJob, ...]
    finished: tuple[FinishedJob, ...]
    pmix: bool


def look(lab: Lab) -> Status:
    """Observe the state of a lab."""
    how = condition(lab)
    up = how is Condition.UP
    return Status(
        lab=lab,
        condition=how,
        nodes=nodes(lab) if up else (),
        queue=queue(lab) if up else (),
        finished=finished_jobs(lab),
        pmix=not (up and _NO_PMIX in _log_of_first_node(lab)),
    )


def _log_of_first_node(lab: Lab) -> str:
    log = lab.place.log(lab.plan.node_names[0])
    return log.read_text(errors="replace") if log.is_file() else ""


def log_file(lab: Lab, part: str) -> Path:
    """The log of a daemon: of munged, slurmctld or a node. Raises WrongInput if the lab has no such daemon."""
    parts = ("slurmctld", "munged", *lab.plan.node_names)
    if part not in parts:
        raise WrongInput(
            f"the lab {lab.name!r} has no daemon {part!r}.{did_you_mean(part, parts)} Its daemons: {', '.join(parts)}.",
            code="no-such-daemon",
        )
    log = lab.place.log(part)
    return log if log.is_file() else lab.place.output(part)


def require_up(lab: Lab) -> Lab:
    """Return `lab`; raise MissingOnHost, with the finding of `ctk lab status`, if it is not up on this host."""
    for finding in _why_not_up(lab, condition(lab)):
        raise MissingOnHost(finding.message, fix=finding.fix, code=finding.code)
    return lab


def _why_not_up(lab: Lab, how: Condition) -> Iterator[Finding]:
    name = lab.name
    if how is Condition.CRASHED:
        message = f"The lab {name!r} has crashed: its daemons are not running."
        fix = f"Clean up and start it again: ctk lab up --name {name}. Clean up only: ctk lab down --name {name}"
        yield Finding("lab-crashed", Severity.ERROR, message, fix)
    if how is Condition.ELSEWHERE:
        message = f"The lab {name!r} runs on the host {lab.host}, not on this host."
        fix = f"Log in to {lab.host}. If that host no longer exists: ctk lab down --name {name} --host-is-gone"
        yield Finding("lab-elsewhere", Severity.ERROR, message, fix)


def judge_lab(status: Status) -> tuple[Finding, ...]:
    """The findings about a lab, most severe first; empty if all is well."""
    name, found = status.lab.name, list(_why_not_up(status.lab, status.condition))
    for node in status.nodes:
        if not node.responds:
            fix = f"If you killed it: ctk lab restore-node {node.name} --name {name}"
            found.append(Finding("node-down", Severity.WARNING, f"The node {node.name} does not respond.", fix))
    if not status.pmix:
        message = "`srun --mpi=pmix` does not work here: slurmd did not find libpmix.so."
        fix = "On Debian and Ubuntu: apt-get install libpmix-dev. Then: ctk lab down, ctk lab up."
        found.append(Finding("no-pmix", Severity.INFO, message, fix))
    return tuple(found)
