"""Whether a job's image fits the GPUs that the job asks for, or does not ask for: by the image's audit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.findings import Finding, Severity, Verdict
from toolkit.support.processes import visible_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.gpu.audit import Audit
    from toolkit.jobs.model import GateCheck, Job
    from toolkit.recipes.model import Target

_NO_GPU = "no-gpu-asked-for"
_CANNOT = "image-cannot-use-gpu"


def audit_for_job(
    job: Job, directory: Path, target: Target, findings: tuple[Finding, ...], *, words: Sequence[str], force: bool
) -> tuple[Finding, ...]:
    """`findings` of `job` with what the audit of its image adds to them.

    `words` is the command line without `ctk`. Raises CheckFailed if the job asks for GPUs that the image cannot use,
    unless `force`.
    """
    if job.gpus is not None and not job.uses_gpu:
        return findings  # a CPU job, as the user confirmed
    from toolkit.gpu.audit import audit_image
    from toolkit.gpu.targets import machines

    try:
        found = audit_image(directory / job.image, *machines(target), command=job.command)
    except WrongInput:  # an image that the runtime can start and ctk cannot read, or a [target] that is none
        return findings
    if not job.uses_gpu:
        return advise_gpu(job, found, findings, words)
    refusal = refuse_gpu(job, found)
    if refusal is None:
        return (*findings, *note_unused(job, found))
    if not force:
        raise CheckFailed(
            f"the job asks for a GPU, but {refusal.message}",
            fix=f"{refusal.fix or ''}\nA CPU job: --gpus 0. To write the script in any case: --force".lstrip(),
            code=_CANNOT,
        )
    return (*findings, refusal)


def refuse_gpu(job: Job, found: Audit) -> Finding | None:
    """A warning if the image cannot use the GPUs of `job`, with the audit's reason and fix.

    A command that starts no Python, such as a shell script, may start one that the image does not run by default.
    """
    if found.verdict not in (Verdict.CPU_ONLY, Verdict.GPU_BROKEN):
        return None
    others = {framework.verdict for framework in found.frameworks if not framework.facts.by_default}
    if found.facts.program is None and Verdict.GPU_READY in others:
        return None
    cause = found.findings[0]
    message = f"{job.image} is {found.verdict}: {cause.message} [{cause.code}]"
    return Finding(_CANNOT, Severity.WARNING, message, cause.fix)


def note_unused(job: Job, found: Audit) -> tuple[Finding, ...]:
    """A note if the job asks for GPUs and nothing that ctk knows in its image uses one."""
    if found.verdict is not Verdict.NO_FRAMEWORK:
        return ()
    message = f"{job.image} has no GPU framework that ctk knows, and the job requests a GPU"
    fix = "For a CPU job: --gpus 0. Ignore this if the program uses CUDA itself."
    return (Finding("gpu-without-framework", Severity.INFO, message, fix),)


def advise_gpu(job: Job, found: Audit, findings: tuple[Finding, ...], words: Sequence[str]) -> tuple[Finding, ...]:
    """`findings` with a warning about a missing `--gpus` that knows the image: its framework, and the line to type."""
    if found.verdict is Verdict.CPU_ONLY:
        return tuple(finding for finding in findings if finding.code != _NO_GPU)
    framework = next((audit.facts for audit in found.frameworks if audit.verdict is not Verdict.CPU_ONLY), None)
    if framework is None:  # nothing known in it needs a GPU: a CPU job is as likely
        return tuple(
            replace(finding, severity=Severity.INFO) if finding.code == _NO_GPU else finding for finding in findings
        )
    message = (
        f"{job.image} has {framework.title} {framework.version}, built for GPUs, but the job requests no GPU and will "
        "run on the CPU"
    )
    fix = f"{_with_gpu(words)}\nIf a CPU job is meant, add --gpus 0 instead."
    return tuple(
        replace(finding, message=message, fix=fix) if finding.code == _NO_GPU else finding for finding in findings
    )


def _with_gpu(words: Sequence[str]) -> str:
    """The command line again, with a GPU: the option comes before the command that the job runs."""
    place = next((number for number, word in enumerate(words, 1) if word in ("sbatch", "qsub", "script")), len(words))
    return visible_command(["ctk", *words[:place], "--gpus", "1", *words[place:]])


def framework_check(image: Path, target: Target) -> GateCheck:
    """The check of the image's GPU framework for the gate. Raises WrongInput if it has none that ctk can check."""
    from toolkit.gpu.audit import audit_image
    from toolkit.gpu.framework_check import checkable, gate_script
    from toolkit.gpu.targets import machines
    from toolkit.jobs.model import GateCheck

    audits = audit_image(image, *machines(target)).frameworks
    facts = next(
        (found.facts for found in audits if found.facts.known.name in checkable() and found.facts.build.gpu), None
    )
    if facts is None:
        raise WrongInput(
            f"{image} has no framework for GPUs that ctk can check ({', '.join(checkable())})",
            fix="Omit --gate framework: the gate then asks the driver.",
        )
    return GateCheck(facts.title, gate_script(facts.known.name, facts.title), facts.interpreter)
