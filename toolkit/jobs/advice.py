"""Warnings about valid jobs that are probably mistakes and would waste queue time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.jobs.dialects.words import SLURM
from toolkit.runtime.commands import as_line, unexpanded_variable
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.resources import OPTIONS
from toolkit.support.findings import Finding, Severity
from toolkit.support.ownership import is_trusted, user_name
from toolkit.support.processes import visible_command
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from toolkit.jobs.dialects.words import Words
    from toolkit.jobs.model import Job
    from toolkit.recipes.model import Recipe

VARIABLE_NOT_SET = "variable-not-set"
# A job that starts Python needs more memory than this; a limit above these is rarely meant as minutes.
_LEAST_MIB = 1000
_FEW_MINUTES, _MOST_HOURS = 12, 24

# Local to each node: a compute node does not see the login node's files in them.
_LOCAL = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108


def advise(
    job: Job, directory: Path, exists: Callable[[Path], bool], environment: Container[str], words: Words = SLURM
) -> tuple[Finding, ...]:
    """Warnings about `job`, to be submitted from `directory`.

    `exists` tells whether a path exists on this host; `environment` has the names of this process's variables;
    `words` are those of the job's scheduler.
    """
    return (
        *_gpu(job),
        *_tasks(job, words),
        *_command(job),
        *_script(job, directory, exists),
        *_variables(job, environment, words),
        *_binds(job, directory, exists),
        *_local(job, directory),
    )


def advise_on_values(typed: Mapping[str, object]) -> tuple[Finding, ...]:
    """Notes on values, as a user or a recipe has them, that mean something else than most users expect.

    `typed` are resources by their key in OPTIONS.
    """
    return tuple(
        Finding("value-in-other-unit", Severity.WARNING, f"--{OPTIONS[key].name} {typed[key]} is {meaning}", fix)
        for key, reading in (("mem", _memory_read), ("time", _time_read), ("array", _array_read))
        for meaning, fix in reading(str(typed.get(key) or ""))
    )


def _memory_read(text: str) -> Iterator[tuple[str, str]]:
    """A number without a unit is in MiB (sbatch(1), --mem)."""
    if text.isdecimal() and 0 < int(text) < _LEAST_MIB:
        yield (
            f"{int(text)} MiB of memory",
            f"{int(text)} GiB is --mem {int(text)}G; if MiB are meant: --mem {int(text)}M",
        )


def _time_read(text: str) -> Iterator[tuple[str, str]]:
    """One number is in minutes, two are minutes and seconds (sbatch(1), --time)."""
    first, colon, second = text.partition(":")
    if not first.isdecimal() or ":" in second or not 0 < int(first) <= (_MOST_HOURS if colon else _FEW_MINUTES):
        return
    rest = f" and {count(int(second), 'second')}" if colon and int(second) else ""
    clock = f"{int(first)}:{second or '00'}:00"
    yield f"{count(int(first), 'minute')}{rest}", f"{_hours(first, second)} is --time {clock}"


def _hours(first: str, second: str) -> str:
    rest = f" and {count(int(second), 'minute')}" if second and int(second) else ""
    return f"{count(int(first), 'hour')}{rest}"


def _array_read(text: str) -> Iterator[tuple[str, str]]:
    """A number alone is one task of that number (sbatch(1), --array)."""
    if text.isdecimal() and int(text) > 1:
        yield f"one task, with the number {int(text)}", f"{int(text)} tasks are --array 0-{int(text) - 1}"


def advise_on_image(image: Path, recipe: Recipe | None, given: bool) -> tuple[Finding, ...]:
    """A warning if a recipe's job will run in an image of another name that was not requested."""
    if given or recipe is None or image.stem == recipe.name:
        return ()
    return (
        _warning(
            "image-of-another-name",
            f"there is no {recipe.name}.sif here: the job runs in {image.name}, the only image in this directory",
            f"To use the recipe's image: ctk build {recipe.name}, then run this command again.",
        ),
    )


def advise_on_owners(paths: Iterable[Path]) -> tuple[Finding, ...]:
    """A warning for each file that belongs to another user, who decides by it what the job runs."""
    found = [(path, path.stat().st_uid) for path in paths if path.exists()]
    return tuple(
        _warning(
            "job-input-of-another-user",
            f"{path} belongs to {user_name(owner)}, not to you or root: it decides what the job runs",
            "Read the file before you submit the job.",
        )
        for path, owner in found
        if not is_trusted(owner)
    )


def _warning(code: str, message: str, fix: str) -> Finding:
    return Finding(code, Severity.WARNING, message, fix)


def _gpu(job: Job) -> Iterator[Finding]:
    if job.gpus is None and not job.uses_gpu:
        yield _warning(
            "no-gpu-asked-for",
            "The job requests no GPU and will run on the CPU",
            "Add --gpus 1, or --gpus 0 to confirm a CPU job.",
        )


def _tasks(job: Job, words: Words) -> Iterator[Finding]:
    if job.tasks > 1:
        start = f"srun starts the command {job.tasks} times, once for each task; SLURM_PROCID is the task's number"
        if words.scheduler is not Scheduler.SLURM:
            start = f"mpirun starts the command {job.tasks} times; the node must have it, and the same MPI as the image"
        yield Finding("several-tasks", Severity.INFO, start)


def _command(job: Job) -> Iterator[Finding]:
    variable = unexpanded_variable(job.command)
    if variable is not None:
        yield _warning(
            "variable-not-expanded",
            f"The program gets the literal text {variable}, not its value: no shell expands its arguments in the job",
            f"To pass its value in the job: {visible_command(['--shell', as_line(job.command)])}",
        )


def _variables(job: Job, environment: Container[str], words: Words) -> Iterator[Finding]:
    for name in job.inherited:
        if name not in environment:
            yield _warning(
                VARIABLE_NOT_SET,
                f"{name} is not set here; a job submitted from here would fail without it",
                f"export {name} before {words.submit}, or give --env-file FILE instead.",
            )
    if job.env_file is not None:
        yield Finding(
            "secrets-in-file",
            Severity.INFO,
            f"The job reads {job.env_file} on its node; keep this file private (mode 0600) and out of version control",
        )


def _script(job: Job, directory: Path, exists: Callable[[Path], bool]) -> Iterator[Finding]:
    program, *arguments = job.command
    if not re.fullmatch(r"python[0-9.]*", program) or not arguments:
        return
    script = arguments[0]
    if script.endswith(".py") and not script.startswith(("-", "/")) and not exists(directory / script):
        yield _warning(
            "script-not-here",
            f"The job runs {script}, which is not in {directory}",
            "Copy it there before the job starts, or give another command after --.",
        )


def _binds(job: Job, directory: Path, exists: Callable[[Path], bool]) -> Iterator[Finding]:
    for bind in job.binds:
        source = directory / bind.split(":")[0]
        if not exists(source):
            yield _warning(
                "bind-not-here",
                f"There is no {source} on this host; the container does not start on a node without it",
                "Ignore this if the directory exists only on the compute nodes.",
            )


def _local(job: Job, directory: Path) -> Iterator[Finding]:
    for what, path in (("The working directory", directory), ("The image", directory / job.image)):
        local = next((place for place in _LOCAL if path.is_relative_to(place)), None)
        if local is not None:
            yield _warning(
                "folder-not-shared",
                f"{what} is in {local}, which is local to each node: on a real cluster the job would fail",
                "Use your home directory or scratch, which all nodes share.",
            )
            return
