"""The lines of a job that its site writes in its own way: the request templates, filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.jobs.model import Job

_WHOLE = ("nodes", "tasks_per_node", "cpus_per_task", "gpus", "mem")
_CORES = ("nodes", "tasks_per_node", "cpus_per_task")
_ELSEWHERE = {"partition": "queue", "account": "account", "qos": "qos"}


@dataclass(frozen=True, slots=True)
class SiteLines:
    """The lines, and the fields of Resources for which the dialect writes none of its own."""

    lines: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()


def site_lines(job: Job, values: Mapping[str, str]) -> SiteLines:
    """What the templates of `job` give. Raises WrongInput if one needs a value that the job lacks."""
    templates = job.requests
    gpus = bool(job.gpus and job.gpus.count)
    cores = any(getattr(job, key) is not None for key in _CORES)
    wanted = [
        (templates.resources, _WHOLE, True),
        (templates.cores, _CORES, templates.resources is None and cores),
        (templates.gpus, ("gpus",), templates.resources is None and gpus),
        (templates.memory, ("mem",), templates.resources is None and job.mem is not None),
        (templates.time, ("time",), "time" in values),
        (templates.queue, ("partition",), job.partition is not None),
        (templates.account, ("account",), job.account is not None),
        (templates.qos, ("qos",), job.qos is not None),
    ]
    lines: list[str] = []
    keys = {key for key, field in _ELSEWHERE.items() if templates.elsewhere(field)}
    for template, covered, needed in wanted:
        if template is None:
            continue
        keys.update(covered)
        if needed:
            lines.append(template.fill(values))
    return SiteLines(tuple(lines), frozenset(keys))
