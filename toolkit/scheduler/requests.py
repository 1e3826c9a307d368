"""Request templates: how a site writes a request in the language of its scheduler, as data."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from toolkit.scheduler.values import NO_TIME_LIMIT, clock_time, memory_mib
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.scheduler.resources import Resources

# What a template may name in braces, and the option of ctk that gives the value where there may be none.
FIELDS: Mapping[str, str | None] = {
    "type": "--gpus TYPE:N",  # type of the GPUs
    "count": "--gpus N",  # GPUs on each node
    "total": "--gpus N",  # GPUs of the whole job
    # GPUs of each slot, where a site counts them so: GPUs of a node divided by its cores.
    "slot_gpus": "--gpus N, a multiple of the slots of a node (processes x cores): this site counts GPUs for each slot",
    "nodes": None,  # number of nodes, 1 if the job requests none
    "processes": None,  # processes on each node, 1 if the job requests none
    "cores": None,  # cores of each process, 1 if the job requests none
    "node_cores": None,  # cores of each node: processes x cores
    "slots": None,  # cores of the whole job: nodes x processes x cores
    "memory": "--mem SIZE",  # of each node, such as 16G
    "memory_mib": "--mem SIZE",  # of each node, a number of MiB
    "slot_memory": "--mem SIZE",  # of each slot, such as 4096M: memory of a node divided by its cores
    "time": "--time LIMIT",  # time limit, such as 100:00:00
    "seconds": "--time LIMIT",  # time limit, a number of seconds
    "queue": "--partition NAME",
    "account": "--account NAME",
    "qos": "--qos NAME",
}
_OPTION = re.compile(r"--?[A-Za-z]")
_LITERAL = re.compile(r"[A-Za-z0-9 @%+=:,./_|&*()<>!-]*")


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """One line of options as the scheduler reads it, with fields of FIELDS in braces: `-l s_gpu={count}`.

    It begins with a dash: `--gres=gpu:{type}:{count}`, `-l select={nodes}:ngpus={count}`, `-l node_f={nodes}`.
    """

    text: str

    @property
    def names(self) -> frozenset[str]:
        """The fields that the template names."""
        return frozenset(name for _, name, _, _ in string.Formatter().parse(self.text) if name is not None)

    def fill(self, values: Mapping[str, str]) -> str:
        """The line with `values`. Raises WrongInput if one that the template names is not there."""
        for name in sorted(self.names):
            if name not in values:
                raise WrongInput(
                    f"the request {self.text!r} needs a value for {{{name}}}",
                    fix=f"Add {FIELDS[name]}.",
                    code="request-needs-value",
                )
        return self.text.format_map(values)


def parse_template(text: str, origin: str) -> RequestTemplate:
    """The template that `text` is; `origin` is its file and key. Raises WrongInput with the valid form."""
    fix = 'For example: "-l gpu={count}", "--gres=gpu:{type}:{count}"'
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:  # a single brace
        raise WrongInput(f"{origin}: {text!r} is not a request template: {error}", fix=fix) from error
    for literal, name, specification, conversion in parts:
        if not _LITERAL.fullmatch(literal):
            raise WrongInput(f"{origin}: {text!r} contains characters other than letters, digits and punctuation of "
                             "scheduler options", fix=fix)  # fmt: skip
        if name is not None and (name not in FIELDS or specification or conversion):
            raise WrongInput(f"{origin}: {text!r} has an unknown field {{{name}}}", fix=f"Fields: {', '.join(FIELDS)}")
    if not _OPTION.match(text):
        raise WrongInput(f"{origin}: {text!r} should begin with a dash, as an option of the scheduler", fix=fix)
    return RequestTemplate(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTemplates:
    """The templates of a site. Where one is None, the dialect writes the request in its own way.

    `resources` is one line for nodes, processes, cores, GPUs and memory together, and replaces the others but `time`.
    `cores` is for nodes, processes and cores (`-pe smp {slots}`). `gpu_type` is for the type, where a job names one.
    OpenPBS has it in the chunks of `-l select`. `account` is a line in the script; a site that takes
    it only on the command line has it in `arguments` (`-g {account}`), which are the arguments at submission. Each of
    those whose fields all have a value is given. Where one of these or `resources` names {queue}, {account} or {qos},
    the dialect writes no line for it.
    """

    resources: RequestTemplate | None = None
    cores: RequestTemplate | None = None
    gpus: RequestTemplate | None = None
    gpu_type: RequestTemplate | None = None
    memory: RequestTemplate | None = None
    time: RequestTemplate | None = None
    queue: RequestTemplate | None = None
    account: RequestTemplate | None = None
    qos: RequestTemplate | None = None
    arguments: tuple[RequestTemplate, ...] = ()

    def elsewhere(self, key: str) -> bool:
        """Whether the value of `key` (`queue`, `account`, `qos`) is given by `resources` or at submission."""
        return any(key in template.names for template in (self.resources, *self.arguments) if template is not None)

    def submission_arguments(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """The words of `arguments` whose fields all have a value."""
        given = [template for template in self.arguments if template.names <= values.keys()]
        return tuple(word for template in given for word in template.fill(values).split())


def request_values(resources: Resources) -> dict[str, str]:
    """The values of FIELDS that `resources` give. GPUs that are not the same number on each node are rounded down;
    the dialects refuse that."""
    nodes, processes, cores = resources.nodes or 1, resources.tasks_per_node or 1, resources.cpus_per_task or 1
    values = {
        "nodes": str(nodes),
        "processes": str(processes),
        "cores": str(cores),
        "node_cores": str(processes * cores),
        "slots": str(nodes * processes * cores),
        "queue": resources.partition,
        "account": resources.account,
        "qos": resources.qos,
    }
    if resources.gpus is not None:
        values |= {"total": str(resources.gpus.count), "type": resources.gpus.kind}
        values |= {"count": str(resources.gpus.count // nodes)}
        each, rest = divmod(resources.gpus.count // nodes, processes * cores)
        values |= {} if rest else {"slot_gpus": str(each)}
    if resources.mem is not None and (size := memory_mib(resources.mem)):
        values |= {"memory": resources.mem, "memory_mib": str(size)}
        values |= {"slot_memory": f"{-(-size // (processes * cores))}M"}
    if resources.time is not None and resources.time != NO_TIME_LIMIT:
        values |= {"time": clock_time(resources.time), "seconds": str(resources.time)}
    return {name: value for name, value in values.items() if value is not None}


NO_TEMPLATES = RequestTemplates()

# The keys that a cluster profile may have for its templates, without `arguments`.
TEMPLATE_KEYS = tuple(field.name for field in fields(RequestTemplates) if field.name != "arguments")
