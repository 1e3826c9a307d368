"""The door to a scheduler's programs: which one this host has, and submit, query and cancel there."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.scheduler import grid_engine, pbs, slurm
from toolkit.scheduler.environment import clean_environment
from toolkit.scheduler.states import JobState, State
from toolkit.scheduler.values import is_name
from toolkit.support.enums import StrEnum
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.processes import run_contained
from toolkit.support.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.support.processes import Completed

_TIMEOUT = 60.0  # seconds


class Scheduler(StrEnum):
    """A scheduler whose language ctk speaks. OpenPBS stands for PBS Professional too."""

    SLURM = "slurm"
    GRID_ENGINE = "sge"
    OPENPBS = "pbs"
    TORQUE = "torque"


def host_scheduler(which: Callable[[str], str | None] = shutil.which) -> Scheduler | None:
    """The scheduler whose programs are on PATH; None if there is none. Slurm comes with a qsub of its own on some."""
    return Scheduler.SLURM if which("sbatch") else qsub_scheduler(which)


def qsub_scheduler(which: Callable[[str], str | None] = shutil.which) -> Scheduler | None:
    """The scheduler whose qsub is on PATH; None if there is none."""
    qsub, qconf = which("qsub"), which("qconf")
    if qsub is None:
        return None
    # A host may have the clients of both: the qconf next to this qsub is of the same scheduler.
    if (qconf and Path(qconf).parent == Path(qsub).parent) or "SGE_ROOT" in os.environ:
        return Scheduler.GRID_ENGINE
    version = run_contained(["qstat", "--version"], timeout=_TIMEOUT) if which("qstat") else None
    return kind_of_pbs(version.stdout + version.stderr) if version else Scheduler.OPENPBS


def kind_of_pbs(version: str) -> Scheduler:
    """OpenPBS prints `pbs_version = 23.06.06`, Torque `Version: 6.1.2`."""
    return Scheduler.TORQUE if re.search(r"^version:", version, re.IGNORECASE | re.MULTILINE) else Scheduler.OPENPBS


def submit(
    scheduler: Scheduler,
    script: Path,
    *,
    directory: Path,
    arguments: Sequence[str] = (),
    env: Mapping[str, str | None] | None = None,
) -> Completed:
    """Run the program that submits `script` from `directory`; `submitted_job` reads the number it prints.

    Raises MissingOnHost if there is no such program.
    """
    argv = {
        Scheduler.SLURM: ["sbatch", "--parsable"],
        Scheduler.GRID_ENGINE: ["qsub", "-terse", "-b", "n"],  # a `.sge_request` may say `-b y`
        Scheduler.OPENPBS: ["qsub"],
        Scheduler.TORQUE: ["qsub"],
    }[scheduler]
    return run_contained([*argv, *arguments, str(script.absolute())], env=env, cwd=directory)


def submitted_job(scheduler: Scheduler, printed: str) -> str:
    """The job number that the program of `submit` printed. Raises ProgramFailed if there is none."""
    if scheduler is Scheduler.SLURM:
        match = re.fullmatch(r"([0-9]+)(?:;\S+)?", printed.strip())
        number = match[1] if match else None
    elif scheduler is Scheduler.GRID_ENGINE:
        number = grid_engine.submitted_job(printed)
    else:
        number = pbs.submitted_job(printed)
    if number is None or not is_name(number):
        program = "sbatch" if scheduler is Scheduler.SLURM else "qsub"
        raise ProgramFailed(
            f"{program} printed no job ID: {printed.strip()[:200]!r}",
            fix="Look for the job among your queued ones (squeue, qstat) before you submit the script again.",
            code="scheduler-output",
        )
    return number


def query(
    scheduler: Scheduler, jobs: Sequence[str], *, env: Mapping[str, str | None] | None = None
) -> dict[str, tuple[JobState, ...]]:
    """The states of `jobs` (numbers as submit gave them), for an array one for each task or group of tasks.

    A job that the scheduler no longer knows is `gone`. Raises MissingOnHost without the programs, and ProgramFailed if
    what they print cannot be read.
    """
    if not jobs:
        return {}
    found = _QUERIES[scheduler](jobs, env)
    by_job: dict[str, list[JobState]] = {job: [] for job in jobs}
    for state in found:
        for job in jobs:
            if belongs(state.job, job):
                by_job[job].append(replace(state, reason=shorten(state.reason), nodes=shorten(state.nodes)))
    gone = "the scheduler no longer knows it, and keeps no account of how it ended"
    return {job: tuple(states) or (JobState(job, State.GONE, reason=gone),) for job, states in by_job.items()}


def belongs(state: str, job: str) -> bool:
    """Whether `state` is the job number `job` itself, or a task of that array (`12_3`, `12.3`, `12[3].host`)."""
    number, _, host = job.partition("[].") if "[]." in job else (job, "", "")
    if state == job or (host and re.fullmatch(rf"{re.escape(number)}\[[\d,:-]*\]\.{re.escape(host)}", state)):
        return True
    return re.fullmatch(rf"{re.escape(number)}[._][\[\d].*", state) is not None and job.isdigit()


def cancel(scheduler: Scheduler, jobs: Sequence[str], *, env: Mapping[str, str | None] | None = None) -> None:
    """Cancel `jobs`. Raises ProgramFailed if the scheduler refuses."""
    if scheduler is Scheduler.SLURM:
        run_contained(["scancel", *jobs], env=env or clean_environment(), timeout=_TIMEOUT).require(
            "cancelling the job"
        )
    else:
        run_contained(["qdel", *jobs], env=env, timeout=_TIMEOUT).require("cancelling the job")


def _query_slurm(jobs: Sequence[str], env: Mapping[str, str | None] | None) -> list[JobState]:
    env = env or clean_environment()
    found: list[JobState] = []
    for job in jobs:  # of several, one that Slurm has forgotten would make it an error for all
        shown = run_contained(["scontrol", "show", "job", "--oneliner", job], env=env, timeout=_TIMEOUT)
        found += slurm.parse_scontrol(shown.stdout)
        if not shown.ok and shutil.which("sacct"):
            argv = ["sacct", "--noheader", "--parsable2", f"--format={slurm.SACCT_FORMAT}", f"--jobs={job}"]
            found += slurm.parse_sacct(run_contained(argv, env=env, timeout=_TIMEOUT).stdout)
    return found


def _query_grid_engine(jobs: Sequence[str], env: Mapping[str, str | None] | None) -> list[JobState]:
    shown = (
        run_contained(["qstat", "-u", "*"], env=env, timeout=_TIMEOUT).require("asking Grid Engine for its jobs").stdout
    )
    broken = [state.job.partition(".")[0] for state in grid_engine.parse_qstat(shown) if "E" in state.reported]
    broken = [job for job in broken if job in jobs]
    details = grid_engine.parse_details(
        run_contained(["qstat", "-j", ",".join(dict.fromkeys(broken))], env=env, timeout=_TIMEOUT).stdout
        if broken
        else ""
    )
    found = list(grid_engine.parse_qstat(shown, details))
    for job in jobs:
        if not any(belongs(state.job, job) for state in found) and shutil.which("qacct"):
            found += grid_engine.parse_qacct(run_contained(["qacct", "-j", job], env=env, timeout=_TIMEOUT).stdout)
    return found


def _query_openpbs(jobs: Sequence[str], env: Mapping[str, str | None] | None) -> list[JobState]:
    found: list[JobState] = []
    for job in jobs:
        for option in (["-x"], []):  # a server without a job history refuses -x
            shown = run_contained(["qstat", *option, "-t", "-f", "-F", "json", job], env=env, timeout=_TIMEOUT)
            if shown.ok and shown.stdout.strip():
                found += pbs.parse_qstat_json(shown.stdout)
                break
    return found


def _query_torque(jobs: Sequence[str], env: Mapping[str, str | None] | None) -> list[JobState]:
    found: list[JobState] = []
    for job in jobs:
        shown = run_contained(["qstat", "-x", "-t", job], env=env, timeout=_TIMEOUT)
        if shown.ok:
            found += pbs.parse_qstat_xml(shown.stdout)
    return found


_QUERIES: dict[Scheduler, Callable[[Sequence[str], Mapping[str, str | None] | None], list[JobState]]] = {
    Scheduler.SLURM: _query_slurm,
    Scheduler.GRID_ENGINE: _query_grid_engine,
    Scheduler.OPENPBS: _query_openpbs,
    Scheduler.TORQUE: _query_torque,
}


def no_programs(scheduler: Scheduler) -> MissingOnHost | None:
    """The error for a host without the programs that submit to `scheduler`; None if they are there."""
    program = "sbatch" if scheduler is Scheduler.SLURM else "qsub"
    if shutil.which(program):
        return None
    return MissingOnHost(f"this host has no {program}", code="no-scheduler")
