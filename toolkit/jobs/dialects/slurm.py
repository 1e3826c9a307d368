"""Slurm: from a Job to the text of a script for sbatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.jobs.gate import LIMIT, gate_values, layer_values
from toolkit.jobs.model import SIGNALS
from toolkit.jobs.quoting import quoted
from toolkit.runtime.engine import NAMES
from toolkit.runtime.options import container_environment, exec_arguments
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import NO_TIME_LIMIT
from toolkit.support.templates import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.jobs.model import Directive, Job


def script_text(job: Job, marker: str) -> str:
    """The whole script. `marker` is the comment by which ctk recognises its own script.

    The values of `job` are those that toolkit.jobs.values lets through: an `#SBATCH` line is not shell, and nothing
    that stands there could be quoted for it.
    """
    return render(
        "sbatch/slurm.sbatch.j2",
        marker=marker,
        directives=_directives(job),
        number="${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" if job.array else "$SLURM_JOB_ID",
        image=quoted(job.image),
        find_runtime=" || ".join(f"command -v {quoted(name)}" for name in (job.runtime, *NAMES) if name),
        environment=container_environment().items(),
        env_file=quoted(job.env_file) if job.env_file else None,
        inherited=job.inherited,
        signals=SIGNALS,
        forward=_forward(job),
        gate=job.gate and job.uses_gpu,
        limit=LIMIT,
        gate_check=gate_values(job.gate_check),
        **layer_values(job.layers),
        monitor=job.monitor and job.uses_gpu,
        container=" ".join(_container(job, ())),
        command=_command(job),
    )


def _forward(job: Job) -> str:
    """The command by which the script passes signal `$1` on.

    srun ends all tasks at SIGHUP and at a second SIGINT within a second (seen with 22.05): there scancel signals them.
    At SIGTERM it ends the step in order; where the whole job ends, Slurm has signalled the tasks itself.
    """
    to_program = 'kill -s "$1" "${program:-$!}"'
    if job.tasks == 1:
        return to_program
    return f'if [ "$1" = TERM ]; then {to_program}; else scancel --signal="$1" "$job"; fi'


def _directives(job: Job) -> list[str]:
    options = {
        "job-name": job.name,
        "output": _output(job),
        "open-mode": "append",
        **{option.name: getattr(job, key) for key, option in OPTIONS.items()},
        "gpus": job.gpus if job.gpus and job.gpus.count else None,
        "time": None if job.time is None else _time(job.time),
    }
    own = [_option(name, str(value)) for name, value in options.items() if value is not None]
    return [*own, *(_option(directive.name, _value(directive, job)) for directive in job.directives)]


def _output(job: Job) -> str:
    # %A and %a are the numbers of the array and of the task (sbatch(1), filename pattern).
    name = "%x-%A_%a.log" if job.array else "%x-%j.log"
    # Slurm puts the directory in front of a relative name and expands patterns in both (seen with 22.05).
    return f"{job.directory.replace('%', '%%')}/{name}" if "%" in job.directory else name


def _value(directive: Directive, job: Job) -> str | None:
    """`--signal=USR1@90` goes to job steps only: without srun there is none, hence `B:`, the batch shell."""
    value = directive.value
    if directive.name != "signal" or value is None or job.tasks > 1:
        return value
    flags, colon, rest = value.rpartition(":")
    return value if "B" in flags else f"B{flags}{colon or ':'}{rest}"


def _option(name: str, value: str | None) -> str:
    if value is None:
        return f"--{name}"
    # sbatch parts such a line at blanks and ends it at `#`, except in quotes.
    parted = any(character in " #" for character in value)
    return f'--{name}="{value}"' if parted else f"--{name}={value}"


def _time(seconds: int) -> str:
    if seconds == NO_TIME_LIMIT:
        return "UNLIMITED"
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hour:02}:{minute:02}:{second:02}"


def _command(job: Job) -> str:
    return " ".join([*_launcher(job), *_container(job, ('"${check[@]}"',)), *map(quoted, job.command)])


def _container(job: Job, check: Sequence[str]) -> list[str]:
    """The words in front of a command in the job's container, with those of `check` just behind the image."""
    # The container's own `env` sets the variables: apptainer hands values from --env and APPTAINERENV_ to a shell,
    # which runs the text in $(…) there (seen with 1.4.5; singularity 3.8 knows no --no-eval).
    variables = [f"{name}={value}" for name, value in job.environment]
    command = ["env", *variables] if variables else []
    arguments = exec_arguments(job.image, command, gpu=job.uses_gpu, binds=job.binds, userns=job.userns)
    options = arguments[: len(arguments) - len(command) - 1]
    return ['"$runtime"', *map(quoted, options), '"$image"', *check, *map(quoted, command)]


def _launcher(job: Job) -> list[str]:
    """A batch script runs once, on the first node; srun starts one process for each task on its own node.

    Since Slurm 22.05 srun no longer takes --cpus-per-task from the job around it (RELEASE_NOTES of 22.05). The tasks
    get the script's environment also where the job was submitted with --export=NONE.
    """
    if job.tasks == 1:
        return []
    cores = [f"--cpus-per-task={job.cpus_per_task}"] if job.cpus_per_task else []
    return ["srun", "--export=ALL", *cores]
