"""The lines of a job that its site writes in its own way: the request templates, filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.scheduler.resources import OPTIONS
from toolkit.support.errors import WrongInput
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.jobs.model import Job
    from toolkit.scheduler.requests import RequestTemplate

_CORES = ("nodes", "tasks_per_node", "cpus_per_task")
_WHOLE = (*_CORES, "gpus", "mem")
_ELSEWHERE = {"partition": "queue", "account": "account", "qos": "qos"}
# What a template names to ask for each of them.
_NAMED_BY = {
    "nodes": {"nodes", "slots"},
    "tasks_per_node": {"processes", "node_cores", "slots"},
    "cpus_per_task": {"cores", "node_cores", "slots"},
    "gpus": {"count", "total", "slot_gpus"},
    "mem": {"memory", "memory_mib", "slot_memory"},
}
# A request for whole units, `node_f={nodes}` or `{queue}={nodes}`, brings the cores, the GPUs and the memory of a unit;
# one that names any of these does not.
_UNITS = {"nodes", "queue"}
_PARTS = {*_NAMED_BY["gpus"], *_NAMED_BY["mem"], "cores", "node_cores", "slots"}


@dataclass(frozen=True, slots=True)
class SiteLines:
    """The lines, and the fields of Resources for which the dialect writes none of its own."""

    lines: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()


def site_lines(
    job: Job, values: Mapping[str, str], owned: Callable[[str], str | None], *, separate: bool = False
) -> SiteLines:
    """What the templates of `job` give.

    `owned` says of a word of a template what to use instead, if it is an option that ctk writes itself. `separate`: the
    scheduler has an option for each field, so that the dialect writes those that a template leaves out.

    Raises WrongInput if a template needs a value that the job lacks, sets an option of ctk, or leaves out what the job
    requests, which it would not get.
    """
    templates = job.requests
    gpus = bool(job.gpus and job.gpus.count)
    cores = any(getattr(job, key) is not None for key in _CORES)
    wanted = [
        (templates.resources, _WHOLE, True),
        (templates.cores, _CORES, templates.resources is None and cores),
        (templates.gpus, ("gpus",), templates.resources is None and gpus),
        (templates.gpu_type, ("gpu_type",), templates.resources is None and gpus and "type" in values),
        (templates.memory, ("mem",), templates.resources is None and job.mem is not None),
        (templates.time, ("time",), "time" in values),
        (templates.queue, ("partition",), job.partition is not None),
        (templates.account, ("account",), job.account is not None),
        (templates.qos, ("qos",), job.qos is not None),
    ]
    lines: list[str] = []
    keys = {key for key, field in _ELSEWHERE.items() if templates.elsewhere(field)}
    for argument in templates.arguments:
        _refuse_owned(argument, owned)
    for template, covered, needed in wanted:
        if template is None:
            continue
        _refuse_owned(template, owned)
        left_out = [key for key in covered if key in _NAMED_BY and not template.names & _NAMED_BY[key]]
        if separate and len(covered) > 1:
            keys.update(set(covered).difference(left_out))
        else:
            keys.update(covered)
            if needed:
                _refuse_left_out(job, template, left_out)
        if needed:
            if "count" in template.names:
                _refuse_uneven(job, template)
            lines.append(template.fill(values))
    return SiteLines(tuple(lines), frozenset(keys))


def _refuse_owned(template: RequestTemplate, owned: Callable[[str], str | None]) -> None:
    for word in template.text.split():
        instead = owned(word) if word.startswith("-") else None
        if instead is not None:
            raise WrongInput(
                f"the request {template.text!r} sets {word}: ctk writes it itself", fix=f"Instead: {instead}."
            )


def _refuse_uneven(job: Job, template: RequestTemplate) -> None:
    if (fix := even_gpus(job)) is not None:
        raise WrongInput(
            f"--gpus {job.gpus} on {count(job.nodes or 1, 'node')}: the request {template.text!r} gives each node the "
            "same number of GPUs",
            fix=fix,
            code="request-omits-value",
        )


def even_gpus(job: Job) -> str | None:
    """What to write instead if the GPUs of `job` are not the same number on each node; None if they are."""
    nodes, gpus = job.nodes or 1, job.gpus.count if job.gpus else 0
    if gpus % nodes == 0:
        return None
    return (
        f"--gpus {gpus // nodes * nodes or nodes} or --gpus {(gpus // nodes + 1) * nodes}, or another number of nodes."
    )


def _refuse_left_out(job: Job, template: RequestTemplate, left_out: list[str]) -> None:
    if template.names & _UNITS and not template.names & _PARTS:
        left_out = [key for key in left_out if key == "nodes"]
    for key in left_out:
        value = getattr(job, key)
        asked = value.count if key == "gpus" and value is not None else value
        if asked is None or asked in (0, 1):
            continue
        option = f"--{OPTIONS[key].name} {value}"
        names = " or ".join(f"{{{name}}}" for name in sorted(_NAMED_BY[key]))
        raise WrongInput(
            f"the request {template.text!r} has no value for {option}, so that the job would not get it",
            fix=f"Name {names} in the request, or omit {option}.",
            code="request-omits-value",
        )
