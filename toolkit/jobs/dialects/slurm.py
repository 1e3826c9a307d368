"""Slurm: from a Job to the text of a script for sbatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.jobs.model import NO_TIME_LIMIT
from toolkit.jobs.quoting import quoted
from toolkit.runtime.engine import NAMES
from toolkit.runtime.options import container_environment, exec_arguments
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from toolkit.jobs.model import Directive, Job


def script_text(job: Job, marker: str) -> str:
    """The whole script. `marker` is the comment by which ctk knows its own work again.

    The values of `job` are those that toolkit.jobs.values lets through: an `#SBATCH` line is not shell, and nothing
    that stands there could be quoted for it.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(shipped("sbatch")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - shell, not HTML; every word of a person's is quoted by toolkit.jobs.quoting
    )
    return templates.get_template("slurm.sbatch.j2").render(
        marker=marker,
        directives=_directives(job),
        number="${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" if job.array else "$SLURM_JOB_ID",
        image=quoted(job.image),
        find_runtime=" || ".join(f"command -v {quoted(name)}" for name in (job.runtime, *NAMES) if name),
        environment=container_environment().items(),
        command=_command(job),
    )


def _directives(job: Job) -> list[str]:
    options = {
        "job-name": job.name,
        # %A and %a are the numbers of the array and of the task (sbatch(1), filename pattern).
        "output": "%x-%A_%a.log" if job.array else "%x-%j.log",
        "open-mode": "append",
        "array": job.array,
        "nodes": job.nodes,
        "ntasks-per-node": job.tasks_per_node,
        "cpus-per-task": job.cpus_per_task,
        "gpus": job.gpus if job.gpus and job.gpus.count else None,
        "mem": job.mem,
        "time": None if job.time is None else _time(job.time),
        "partition": job.partition,
        "account": job.account,
    }
    own = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return [*own, *map(_directive, job.directives)]


def _directive(directive: Directive) -> str:
    if directive.value is None:
        return f"--{directive.name}"
    # sbatch parts such a line at blanks and ends it at `#`, except in quotes.
    parted = any(character in " #" for character in directive.value)
    return f'--{directive.name}="{directive.value}"' if parted else f"--{directive.name}={directive.value}"


def _time(seconds: int) -> str:
    if seconds == NO_TIME_LIMIT:
        return "UNLIMITED"
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hour:02}:{minute:02}:{second:02}"


def _command(job: Job) -> str:
    # The container's own `env` sets the variables: apptainer hands values from --env and APPTAINERENV_ to a shell,
    # which runs what stands in $(…) there (seen with 1.4.5; singularity 3.8 knows no --no-eval).
    variables = [f"{name}={value}" for name, value in job.environment]
    command = ["env", *variables, *job.command] if variables else job.command
    arguments = exec_arguments(job.image, command, gpu=job.uses_gpu, binds=job.binds, userns=job.userns)
    words = ['"$image"' if word == job.image else quoted(word) for word in arguments]
    return " ".join([*_launcher(job), '"$runtime"', *words])


def _launcher(job: Job) -> list[str]:
    """A batch script runs once, on the first node; srun starts one process for each task on its own node.

    Since Slurm 22.05 srun no longer takes --cpus-per-task from the job around it (RELEASE_NOTES of 22.05).
    """
    if job.tasks == 1:
        return []
    return ["srun", *([f"--cpus-per-task={job.cpus_per_task}"] if job.cpus_per_task else [])]
