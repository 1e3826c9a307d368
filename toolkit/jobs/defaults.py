"""From what a user asked for to a whole job: the command line first, then the recipe, then what the directory holds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from toolkit.jobs.model import Gpus, Job
from toolkit.jobs.values import (
    check_account,
    check_array,
    check_bind,
    check_count,
    check_name,
    check_partition,
    check_submission_directory,
    parse_directive,
    parse_gpus,
    parse_memory,
    parse_time,
)
from toolkit.jobs.variables import check_env_file, parse_environment, refuse_secrets, refuse_unexported
from toolkit.recipes.model import JobDefaults
from toolkit.runtime.commands import check_command
from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from toolkit.recipes.model import Recipe

Written = TypeVar("Written")
Value = TypeVar("Value")

_SCRIPT = "train.py"


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What the command line says, as it was written; None where it says nothing."""

    command: tuple[str, ...] = ()
    gpus: str | None = None
    nodes: int | None = None
    tasks_per_node: int | None = None
    time: str | None = None
    mem: str | None = None
    cpus_per_task: int | None = None
    partition: str | None = None
    account: str | None = None
    array: str | None = None
    binds: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    env_file: Path | None = None
    directives: tuple[str, ...] = ()


def choose_image(given: Path | None, name: str | None, recipe: Recipe | None, directory: Path) -> Path:
    """The image of a job: the one given, else the recipe's, else the one of the job's name, else the only one here.

    Raises WrongInput where that leaves none or several.
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
    here = f"several images are here ({', '.join(image.name for image in images)})" if images else "no image is here"
    build = f"ctk build {recipe.name} makes the recipe's. " if recipe else ""
    raise WrongInput(f"{here}: which one is the job to run in?", fix=f"{build}Another: --image FILE.sif")


def complete(
    request: JobRequest,
    *,
    name: str,
    image: Path,
    recipe: Recipe | None,
    directory: Path,
    runtime: str | None = None,
    userns: bool = False,
) -> Job:
    """The job that `request` means in `directory`, which it will be submitted from; `runtime` and `userns` as in Job.

    Raises WrongInput with the option, or the recipe's file and key, whose value cannot be used.
    """
    given = recipe.job if recipe else JobDefaults()
    origin = f"{recipe.path}: job" if recipe else "job"

    def pick(
        written: Written | None, default: Written | None, check: Callable[[Written, str], Value], option: str
    ) -> Value | None:
        if written is not None:
            return check(written, option)
        key = option.removeprefix("--").replace("-", "_")
        return None if default is None else check(default, f"{origin}.{key}")

    directives = tuple(map(parse_directive, request.directives))
    default_gpus = None if given.gpus is None else str(given.gpus)
    if any(directive.asks_for_gpus for directive in directives):
        default_gpus = None  # the site's own way of asking stands instead of the recipe's number
    gpus: Gpus | None = pick(request.gpus, default_gpus, parse_gpus, "--gpus")
    command = check_command(request.command or given.command or _command_here(directory))
    refuse_secrets(command, directives)
    variables = tuple(map(parse_environment, request.environment))
    inherited = _unique(name for name, value in variables if value is None)
    refuse_unexported(inherited, directives)
    return Job(
        name=check_name(name),
        image=_as_the_script_says(image, directory, "--image"),
        command=command,
        gpus=gpus,
        nodes=pick(request.nodes, given.nodes, check_count, "--nodes"),
        tasks_per_node=pick(request.tasks_per_node, None, check_count, "--ntasks-per-node"),
        time=pick(request.time, given.time, parse_time, "--time"),
        mem=pick(request.mem, given.mem, parse_memory, "--mem"),
        cpus_per_task=pick(request.cpus_per_task, given.cpus_per_task, check_count, "--cpus-per-task"),
        partition=pick(request.partition, given.partition, check_partition, "--partition"),
        account=pick(request.account, given.account, check_account, "--account"),
        array=pick(request.array, None, check_array, "--array"),
        binds=_unique(
            [
                *(check_bind(bind, "--bind") for bind in request.binds),
                *(check_bind(bind, f"{origin}.binds") for bind in given.binds),
            ]
        ),
        environment=tuple((name, value) for name, value in variables if value is not None),
        inherited=inherited,
        env_file=_env_file(request.env_file, directory),
        directives=directives,
        runtime=runtime,
        userns=userns,
        directory=check_submission_directory(str(directory)),
    )


def _command_here(directory: Path) -> tuple[str, ...]:
    if (directory / _SCRIPT).is_file():
        return ("python", _SCRIPT)
    raise WrongInput(
        f"what is the job to run? The recipe names no command, and there is no {_SCRIPT} here",
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
