"""Ask Slurm whether and when it would start a job, without submitting it: `sbatch --test-only`."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.jobs.submission import is_unreachable, sbatch_environment
from toolkit.scheduler import programs
from toolkit.scheduler.detection import Detected, profile_from, slurm_queues
from toolkit.scheduler.environment import clean_environment
from toolkit.scheduler.limits import check_request
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.slurm_nodes import parse_partitions
from toolkit.support.errors import ProgramFailed
from toolkit.support.files import write_atomically
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import run_contained
from toolkit.support.staging import staging

if TYPE_CHECKING:
    from toolkit.jobs.model import Job, Script

_TIMEOUT = 30.0  # seconds
# On standard error: `sbatch: Job 7 to start at 2026-11-23T01:02:03 using 4 processors on nodes n1 in partition cpu`.
_START = re.compile(r"Job \d+ to start at (?P<time>\S+) using \d+ processors on nodes (?P<nodes>\S+)")
_PREFIX = re.compile(r"^(?:sbatch|allocation failure|error): ", re.MULTILINE)


def ask_slurm(script: Script, directory: Path) -> Finding | None:
    """What Slurm says of `script`, submitted from `directory`; None on a host that reaches no Slurm.

    It checks partition, GPUs and nodes. It checks neither the partition's time limit nor, without an accounting
    database, account and QOS (seen with 22.05).
    """
    if shutil.which("sbatch") is None or is_unreachable(""):
        return None
    with staging(Path(tempfile.gettempdir())) as place:
        path = place / "job.sbatch"
        write_atomically(path, script.text, durable=False)
        done = programs.submit(
            Scheduler.SLURM, path, directory=directory, arguments=["--test-only"], env=sbatch_environment(script.job)
        )
    printed = done.stdout + done.stderr
    return None if not done.ok and is_unreachable(printed) else judge_answer(printed, ok=done.ok)


def ask_limits(job: Job, number: str) -> tuple[Finding, ...]:
    """Warnings if Slurm has accepted `job` as `number` and lets it wait for ever: its partition allows less.

    `sbatch` and `--test-only` do not say so (seen with 22.05). A QOS may allow more, so a job with one is not judged.
    """
    if job.qos is not None or shutil.which("scontrol") is None:
        return ()
    try:
        done = run_contained(["scontrol", "show", "partition", "--oneliner"], env=clean_environment(), timeout=_TIMEOUT)
    except ProgramFailed:
        return ()
    return judge_limits(done.stdout, job, number) if done.ok else ()


def judge_limits(partitions: str, job: Job, number: str) -> tuple[Finding, ...]:
    """The same, by what `scontrol show partition --oneliner` printed."""
    queues = slurm_queues(parse_partitions(partitions))
    profile = profile_from(Detected(Scheduler.SLURM, ("scontrol",), queues, ()), Path("slurm"), "")
    return tuple(
        Finding(
            finding.code,
            Severity.WARNING,
            f"{finding.message}: job {number} will wait until it is cancelled",
            f"scancel {number}, then submit again. {finding.fix}".replace("`ctk cluster show slurm`", "`sinfo --long`"),
        )
        for finding in check_request(profile, job)
        if finding.code == "request-over-limit"
    )


def judge_answer(printed: str, *, ok: bool) -> Finding:
    """The finding of what `sbatch --test-only` printed."""
    match = _START.search(printed)
    if ok and match is not None:
        missed = "it checks neither time limits nor, without an accounting database, accounts"
        message = f"Slurm would start the job at {match['time']} on {match['nodes']} (sbatch --test-only; {missed})"
        return Finding("scheduler-accepts", Severity.OK, message)
    words = " ".join(dict.fromkeys(_PREFIX.sub("", line).strip() for line in printed.splitlines() if line.strip()))
    while (shorter := _PREFIX.sub("", words)) != words:
        words = shorter
    return Finding(
        "scheduler-refuses",
        Severity.WARNING,
        f"Slurm would refuse the job: {words or 'it gives no reason'}",
        "Correct the option that it names. `ctk cluster show` lists what the cluster has.",
    )
