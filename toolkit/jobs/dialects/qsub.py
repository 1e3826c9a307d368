"""What the languages of Grid Engine and PBS have in common: options of qsub, and what neither can express."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from typing import TYPE_CHECKING

from toolkit.jobs.dialects.site import even_gpus, site_lines
from toolkit.jobs.model import Directive
from toolkit.scheduler.requests import request_values
from toolkit.scheduler.values import refuse
from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from toolkit.jobs.dialects.site import SiteLines
    from toolkit.jobs.model import Job

_DIRECTIVE = re.compile(r"-(?P<name>[A-Za-z_]+)(?: +(?P<value>\S+))?")
_RESOURCE = re.compile(r"(?:^|[,: ])(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:=|$)")
_PLAIN = re.compile(r"(?!ctk-base64:)[A-Za-z0-9_@%+=:./-]*")
_SIGNS = re.compile(r"[A-Za-z0-9 @%+=:,./_|&*()<>!\[\]-]*")
# Options that a request template may set, although ctk writes them itself where there is none.
_OF_REQUESTS = ("pe", "P", "q", "A")
LOG_OPTIONS = dict.fromkeys(("o", "e", "j"), "the log is always logs/NAME-ID.log")


def parse_option(text: str, own: Mapping[str, str], resources: Mapping[str, str]) -> Directive:
    """An option of qsub, `-name` or `-name value`.

    Raises WrongInput for one of `own`, or `-l` with one of `resources`, which ctk writes itself; the values say what
    to use instead.
    """
    match = _DIRECTIVE.fullmatch(text)
    if match is None:
        refuse(
            "--directive",
            text,
            "one option, -name or -name value",
            fix="For example: --directive='-l gpu_type=a100' --directive='-r y'",
        )
    name, value = match["name"], match["value"]
    if name in own:
        raise WrongInput(f"--directive {text!r}: ctk writes -{name} itself", fix=f"Instead: {own[name]}.")
    if value is None:
        return Directive(name)
    one_line(value, f"--directive -{name}")
    if not _SIGNS.fullmatch(value):
        refuse(f"--directive -{name}", value, "plain ASCII without quotes, backslashes, `#` and `$`")
    for resource in map(str, _RESOURCE.findall(value)) if name == "l" else ():
        if resource in resources:
            raise WrongInput(
                f"--directive {text!r}: ctk writes -l {resource} itself", fix=f"Instead: {resources[resource]}."
            )
    return Directive(name, value)


def owned_in_requests(own: Mapping[str, str]) -> dict[str, str]:
    """Of the options that ctk writes itself, those that no request template may set, with what to use instead."""
    return {
        **{name: instead for name, instead in own.items() if name not in _OF_REQUESTS},
        **dict.fromkeys(("v", "V"), "use --env"),
    }


def option(directive: Directive) -> str:
    """The directive as the scheduler reads it."""
    return f"-{directive.name}" if directive.value is None else f"-{directive.name} {directive.value}"


def unsupported(option_name: str, title: str, reason: str, instead: str) -> WrongInput:
    """The error for what the language of a scheduler cannot express."""
    return WrongInput(f"{title} cannot express {option_name}: {reason}", fix=instead, code="not-in-this-dialect")


def checked_site_lines(job: Job, title: str, owned: Callable[[str], str | None]) -> SiteLines:
    """The site's own lines for `job`. Raises WrongInput for what neither of these languages can express."""
    if (fix := even_gpus(job)) is not None:
        raise unsupported(
            f"--gpus {job.gpus} on --nodes {job.nodes}", title, "each node gets the same number of GPUs", fix
        )
    if job.monitor and (job.nodes or 1) > 1:
        raise unsupported(
            "--gpu-monitor on several nodes", title, "it is started by Slurm on each node", "Omit --gpu-monitor."
        )
    site = site_lines(job, request_values(job), owned)
    if job.qos is not None and "qos" not in site.keys:
        raise unsupported(
            f"--qos {job.qos}",
            title,
            "it has queues only",
            "--partition QUEUE, or your site's own option as --directive.",
        )
    if job.mem == "0" and "mem" not in site.keys:
        raise unsupported("--mem 0", title, "it has no word for all memory of a node", "Name the size: --mem 64G.")
    return site


def gpu_type_unsupported(job: Job, title: str, example: str) -> WrongInput:
    """The error for a GPU type without a template that names it."""
    assert job.gpus is not None  # noqa: S101 - the caller has asked
    return unsupported(
        f"the GPU type of --gpus {job.gpus}",
        title,
        "each site has its own name for it",
        f"--gpus {job.gpus.count}, or your site's own request: --request '{example}'",
    )


def encode_variables(names: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The values of those of `names` that qsub of OpenPBS would change, in a form that it leaves and a script reads.

    Of the value of `-v NAME`, it takes quotes, backslashes and trailing blanks away, or refuses it (copy_env_value in
    qsub.c; seen with 23.06).
    """
    given = {name: environment[name] for name in names if name in environment}
    return {
        name: f"ctk-base64:{b64encode(os.fsencode(value)).decode()}"
        for name, value in given.items()
        if not _PLAIN.fullmatch(value)
    }


def inherited_variables(job: Job) -> list[str]:
    """The option that passes variables on to the job, which neither scheduler does by itself."""
    return [f"-v {','.join(job.inherited)}"] if job.inherited else []
