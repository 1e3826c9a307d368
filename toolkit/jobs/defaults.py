"""Complete a job request: from the command line, then the recipe, then the directory."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.model import GateKind, Job
from toolkit.jobs.values import (
    check_bind,
    check_name,
)
from toolkit.jobs.variables import check_env_file, parse_environment, refuse_secrets, refuse_unexported
from toolkit.recipes.model import JobDefaults
from toolkit.runtime.commands import check_command
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.requests import NO_TEMPLATES, parse_template
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import check_account, check_count, check_module
from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from toolkit.jobs.dialects.dialect import Dialect
    from toolkit.recipes.model import Recipe
    from toolkit.scheduler.requests import RequestTemplates

_SCRIPT = "train.py"


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The values of the command line, as written: `resources` by the keys of OPTIONS, `request` a template.

    `ntasks` is the number of processes of the whole job, where it is given so.
    """

    command: tuple[str, ...] = ()
    resources: Mapping[str, str | int | None] = field(default_factory=dict)
    ntasks: int | None = None
    binds: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    env_file: Path | None = None
    directives: tuple[str, ...] = ()
    gate: bool = True
    monitor: bool = False
    results: bool = False
    node_tmp: bool = False
    line_buffered: bool = False
    request: str | None = None
    group: str | None = None
    not_secret: tuple[str, ...] = ()


def choose_image(given: Path | None, name: str | None, recipe: Recipe | None, directory: Path) -> Path:
    """The image of a job: the one given, else the recipe's, else the one of the job's name, else the only one here.

    Raises WrongInput if that leaves none or several.
    """
    if given is not None:
        return given
    images = sorted(directory.glob("*.sif"))
    by_name = {image.stem: image for image in images}
    for wanted in (recipe.name if recipe else None, name):
        if wanted in by_name:
            return by_name[wanted]
    if len(images) == 1:
        return images[0]
    here = (
        f"there are several images here ({', '.join(image.name for image in images)})"
        if images
        else "there is no image here"
    )
    build = f"ctk build {recipe.name} builds the recipe's image. " if recipe else ""
    raise WrongInput(f"{here}, and no image was chosen for the job", fix=f"{build}Another image: --image FILE.sif")


def complete(
    request: JobRequest,
    *,
    name: str,
    image: Path,
    recipe: Recipe | None,
    directory: Path,
    runtime: str | None = None,
    userns: bool = False,
    dialect: Dialect = SLURM,
    requests: RequestTemplates = NO_TEMPLATES,
) -> Job:
    """The job that `request` means in `directory`, which it will be submitted from; `runtime` and `userns` as in Job.

    The directives of `request` are in the language of `dialect`. `requests` are the site's templates.

    Raises WrongInput with the option, or the recipe's file and key, whose value cannot be used.
    """
    given = recipe.job if recipe else JobDefaults()
    origin = f"{recipe.path}: job" if recipe else "job"

    directives = tuple(map(dialect.parse_directive, request.directives))
    defaults = dict(given.resources)
    if any(directive.asks_for_gpus for directive in directives):
        defaults.pop("gpus", None)  # the site's own way of asking stands instead of the recipe's number
    command = check_command(request.command or given.command or _command_here(directory))
    not_secret = (*request.not_secret, *(recipe.not_secret if recipe else ()))
    refuse_secrets("the command", command, not_secret)
    for option, texts in _written(request).items():
        refuse_secrets(option, texts, not_secret)
    variables = tuple(parse_environment(text, not_secret) for text in request.environment)
    inherited = _unique(name for name, value in variables if value is None)
    refuse_unexported(inherited, directives)
    return Job(
        name=check_name(name),
        image=_as_the_script_says(image, directory, "--image"),
        command=command,
        **_with_tasks(_resources(request.resources, defaults, origin), request.ntasks),
        binds=_unique(
            [
                *(check_bind(bind, "--bind") for bind in request.binds),
                *(check_bind(bind, f"{origin}.binds") for bind in given.binds),
            ]
        ),
        modules=_unique(
            [
                *(check_module(module) for module in request.modules),
                *(check_module(module, f"{origin}.modules") for module in given.modules),
            ]
        ),
        environment=tuple((name, value) for name, value in variables if value is not None),
        inherited=inherited,
        env_file=_env_file(request.env_file, directory),
        directives=directives,
        runtime=runtime,
        userns=userns,
        directory=dialect.check_directory(str(directory)),
        gate=request.gate,
        monitor=request.monitor,
        results=request.results,
        node_tmp=request.node_tmp,
        line_buffered=request.line_buffered,
        requests=_requests(request.request, requests),
        arguments=_arguments(request.group, dialect),
        umask=_umask(),
    )


def _umask() -> int:
    """The umask of this process, which the system only tells whoever sets another one."""
    os.umask(found := os.umask(0o077))
    return found


def _written(request: JobRequest) -> dict[str, tuple[str, ...]]:
    """What else of the command line is written to a script as it stands, by its option."""
    return {
        "--directive": request.directives,
        "--bind": request.binds,
        "--request": tuple(filter(None, [request.request])),
        **{
            f"--{key.replace('_', '-')}": (value,) for key, value in request.resources.items() if isinstance(value, str)
        },
    }


def _requests(line: str | None, requests: RequestTemplates) -> RequestTemplates:
    return requests if line is None else replace(requests, resources=parse_template(line, "--request"))


def _arguments(group: str | None, dialect: Dialect) -> tuple[str, ...]:
    """The group as an argument of qsub, which Univa and Altair Grid Engine take only there."""
    if group is None:
        return ()
    if dialect.words.scheduler is not Scheduler.GRID_ENGINE:
        raise WrongInput(
            f"--group {group} is for Grid Engine: {dialect.words.title} has no such option",
            fix=f"To charge an account: --account {group}",
            code="not-in-this-dialect",
        )
    return ("-g", check_account(group, "--group"))


def check_gpu_options(job: Job, gate: GateKind) -> None:
    """Raise WrongInput where options about GPUs or nodes contradict each other."""
    asked = gate is GateKind.FRAMEWORK
    if asked and not job.gate:
        raise WrongInput("--gate framework has no effect with --no-gpu-gate", fix="Omit one of the two.")
    if job.node_tmp and (job.nodes or 1) > 1:
        raise WrongInput(
            "--node-tmp is for a job on one node: the directory is made where the script runs",
            fix="Omit --node-tmp, and have the program make its own temporary directory on each node.",
        )
    if job.gpus is not None and not job.uses_gpu and (asked or job.monitor):
        option = "--gate framework" if asked else "--gpu-monitor"
        raise WrongInput(f"{option} has no effect in a job without GPUs (--gpus 0)", fix=f"Omit {option}.")
    if job.gpus is not None and 0 < job.gpus.count < (job.nodes or 1):
        raise WrongInput(
            f"--gpus {job.gpus} is fewer than --nodes {job.nodes}: the number is that of the whole job, and each "
            "node of a job needs at least one",
            fix=f"--gpus {replace(job.gpus, count=job.nodes or 1)}, or fewer nodes.",
        )


def _resources(
    written: Mapping[str, str | int | None], defaults: Mapping[str, str | int], origin: str
) -> dict[str, Any]:
    """The checked values: the command line's, else the recipe's. `origin` is the recipe's path for errors."""
    found = {}
    for key, option in OPTIONS.items():
        if (value := written.get(key)) is not None:
            found[key] = option.check(value, f"--{option.name}")
        elif key in defaults:
            found[key] = option.check(defaults[key], f"{origin}.{key}")
    return found


def _with_tasks(found: dict[str, Any], ntasks: int | None) -> dict[str, Any]:
    """The values with `ntasks` processes spread evenly over the nodes. Raises WrongInput if that is not possible."""
    if ntasks is None:
        return found
    nodes, each = found.get("nodes") or 1, found.get("tasks_per_node")
    share, rest = divmod(check_count(ntasks, "--ntasks"), nodes)
    if rest or not share:
        over = -(-ntasks // nodes)
        raise WrongInput(
            f"--ntasks {ntasks} cannot be spread evenly over --nodes {nodes}: each node starts the same number",
            fix=f"--ntasks-per-node {over} starts {over * nodes} processes.",
        )
    if each not in (None, share):
        raise WrongInput(
            f"--ntasks {ntasks} contradicts --ntasks-per-node {each} on --nodes {nodes}", fix="Omit one of the two."
        )
    return {**found, "tasks_per_node": share}


def _command_here(directory: Path) -> tuple[str, ...]:
    if (directory / _SCRIPT).is_file():
        return ("python", _SCRIPT)
    raise WrongInput(
        f"no command for the job: the recipe has none, and there is no {_SCRIPT} here",
        fix="Give the command after --, for example: -- python main.py --epochs 3",
    )


def _env_file(path: Path | None, directory: Path) -> str | None:
    return None if path is None else _as_the_script_says(check_env_file(path), directory, "--env-file")


def _as_the_script_says(path: Path, directory: Path, option: str) -> str:
    """Relative to the directory where it lies in it, so that it can be moved; never like an option or a scheme."""
    text = one_line(os.path.normpath(directory / path), option)
    inside = os.path.relpath(text, directory)
    return text if inside.startswith("..") else f"./{inside}"


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
