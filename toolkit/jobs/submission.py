"""Submit a script to this host's scheduler, with sbatch or qsub."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.jobs.dialects.qsub import encode_variables
from toolkit.jobs.model import Submission
from toolkit.lab import registry
from toolkit.scheduler import programs
from toolkit.scheduler.environment import REACH_CLUSTER, clean_environment
from toolkit.scheduler.programs import Scheduler, qsub_scheduler
from toolkit.scheduler.requests import request_values
from toolkit.scheduler.resources import OPTIONS
from toolkit.support.errors import MissingOnHost
from toolkit.support.processes import command_line
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.jobs.model import Job, Script

# Messages of sbatch if no cluster is configured, or the controller is down.
_NO_CLUSTER = re.compile(
    r"configuration source|Unable to process configuration|Unable to contact slurm controller|Connection refused",
    re.IGNORECASE,
)

# Other options whose variable (sbatch(1), INPUT ENVIRONMENT VARIABLES) sets a user's default for all jobs, and that
# decide neither what runs nor where the log is.
_USER_DEFAULTS = ("clusters", "constraint", "reservation", "wckey")


def submit(script: Script, directory: Path) -> Submission:
    """Submit `script` from `directory`, where its job will run.

    Raises MissingOnHost if there is no scheduler, ProgramFailed if it rejects the job.
    """
    program, *arguments = submit_command(script)
    if shutil.which(program) is None:
        raise _no_scheduler(script, f"this host has no {program}")
    if script.scheduler is not Scheduler.SLURM:
        return _submit_with_qsub(script, directory, arguments)
    settings = os.environ.get("SLURM_CONF")
    if settings and not Path(settings).is_file():
        # sbatch would look for the file for a minute before it gave up.
        raise _no_scheduler(
            script, f"SLURM_CONF is set to {settings}, which does not exist (is a practice cluster down?)"
        )
    done = programs.submit(
        Scheduler.SLURM, script.path, directory=directory, arguments=arguments, env=sbatch_environment(script.job)
    )
    if not done.ok and _NO_CLUSTER.search(done.stderr):
        raise _no_scheduler(script, done.stderr.strip().splitlines()[-1])
    done.require(
        f"submitting {script.path}",
        fix=f"The script is kept. Correct what sbatch reports, then {_by_hand(script)}",
    )
    return Submission(script, programs.submitted_job(Scheduler.SLURM, done.stdout))


def is_unreachable(printed: str) -> bool:
    """Whether sbatch printed that this host reaches no cluster."""
    settings = os.environ.get("SLURM_CONF")
    return _NO_CLUSTER.search(printed) is not None or bool(settings and not Path(settings).is_file())


def submit_command(script: Script) -> list[str]:
    """The program that submits `script`, with the arguments that the scheduler takes only there."""
    job = script.job
    program = "sbatch" if script.scheduler is Scheduler.SLURM else "qsub"
    return [program, *job.arguments, *job.requests.submission_arguments(request_values(job))]


def _submit_with_qsub(script: Script, directory: Path, arguments: Sequence[str]) -> Submission:
    here = qsub_scheduler()
    if here is not script.scheduler:
        raise _no_scheduler(
            script, f"the qsub of this host is that of {here}, and the script is for {script.scheduler}"
        )
    encoded = encode_variables(script.job.inherited, os.environ) if here is Scheduler.OPENPBS else {}
    done = programs.submit(script.scheduler, script.path, directory=directory, arguments=arguments, env=encoded)
    done.require(
        f"submitting {script.path}",
        fix=f"The script is kept. Correct what qsub reports, then {_by_hand(script)}",
    )
    return Submission(script, programs.submitted_job(script.scheduler, done.stdout))


def sbatch_environment(job: Job) -> dict[str, str | None]:
    """Changes to the environment for sbatch, where None unsets a variable.

    Unset are the variables that sbatch prefers to the script, and those that a job around this one set for itself. A
    user's defaults for what the script leaves open (`SBATCH_ACCOUNT`) stay.
    """
    asked_for = {directive.name for directive in job.directives}
    keep = {option.variable for key, option in OPTIONS.items() if option.variable and getattr(job, key) is None}
    keep |= {f"SBATCH_{name.upper()}" for name in _USER_DEFAULTS if name not in asked_for}
    return clean_environment(keep=REACH_CLUSTER | {"SLURM_CLUSTERS"} | keep)


def _no_scheduler(script: Script, reason: str) -> MissingOnHost:
    lab = f"{registry.advice()}\n" if script.scheduler is Scheduler.SLURM else ""
    return MissingOnHost(
        f"{script.path} was written but not submitted, because no scheduler is available: {reason}",
        fix=f"{lab}On the cluster's login node: {_by_hand(script)}",
        code="no-scheduler",
    )


def _by_hand(script: Script) -> str:
    return command_line([*submit_command(script), path_argument(script.path)])
