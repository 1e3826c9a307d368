"""Jobs on a cluster: its profile applied, its limits checked before anything is written, and an estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.jobs.dialects.words import Words
    from toolkit.jobs.model import Job, Script
    from toolkit.recipes.model import Recipe, Target
    from toolkit.scheduler.estimate import Estimate
    from toolkit.scheduler.profiles import Profile


def profile_for(named: str | None, recipe: Recipe | None, words: Words) -> tuple[Profile | None, tuple[Finding, ...]]:
    """The profile of the cluster that a job in this scheduler's language is for; None if nobody names one.

    Raises WrongInput if the command line names a cluster with another scheduler. One that the recipe, the user or the
    site chose is left out then, with a note.
    """
    from toolkit.scheduler.profile_places import Choice, chosen

    ours = Choice(recipe.job.cluster, str(recipe.path)) if recipe and recipe.job.cluster else None
    found = chosen(named, ours)
    if found is None or found[1].scheduler is words.scheduler:
        return (found[1] if found else None), ()
    from toolkit.jobs.dialects.known import DIALECTS

    choice, profile = found
    has = DIALECTS[profile.scheduler].words
    command = f"`{has.ctk} --cluster {choice.name}`"
    if named is None:
        message = (
            f"this script is for {words.title}, and your default cluster {choice.name} ({choice.origin}) has "
            f"{has.title}: its limits and requests do not apply"
        )
        fix = f"For {choice.name}: {command}. Ignore this if the job is for another cluster."
        return None, (Finding("wrong-scheduler", Severity.INFO, message, fix),)
    raise WrongInput(
        f"this writes a script for {words.title}, and cluster {profile.name} has {has.title}",
        fix=f"Use {command}.",
        code="wrong-scheduler",
    )


def on_cluster(job: Job, profile: Profile | None, directory: Path, *, force: bool) -> tuple[Job, tuple[Finding, ...]]:
    """The job as the cluster wants it, and what is to be said of it there.

    Raises WrongInput if the cluster would refuse it, naming the nearest possible request; with `force` these are
    warnings.
    """
    if profile is None:
        return job, ()
    from toolkit.jobs.offline import advise_downloads
    from toolkit.jobs.on_cluster import job_on
    from toolkit.scheduler.limits import check_request

    job = job_on(job, profile)
    group = "-g" in job.arguments  # which Grid Engine sites charge instead of an account
    refused = check_request(profile, replace(job, account=job.account or "group") if group else job)
    if refused and not force:
        raise WrongInput(
            "; ".join(finding.message for finding in refused),
            fix="\n".join(dict.fromkeys(finding.fix for finding in refused if finding.fix)) or None,
            code=refused[0].code,
        )
    warnings = tuple(replace(finding, severity=Severity.WARNING) for finding in refused)
    downloads = advise_downloads(job, directory, f"cluster {profile.name}") if profile.internet is False else ()
    return job, (*warnings, *downloads)


def target_on(job: Job, profile: Profile | None, target: Target) -> Target:
    """The machine to judge the job's image for: the GPUs that it can get on the cluster, else those of the recipe."""
    if profile is None or not job.uses_gpu:
        return target
    from toolkit.cli.clusters import cluster_target
    from toolkit.jobs.on_cluster import gpu_types_of

    found = cluster_target(replace(profile, gpu_types=gpu_types_of(job, profile)))
    if not found.gpus and found.driver is None:
        return target
    return replace(found, architectures=target.architectures)


def show_estimate(
    script: Script, profile: Profile | None, directory: Path, findings: Sequence[Finding], *, json: bool
) -> None:
    """Print what the job costs at most, and on Slurm what `sbatch --test-only` says. Exits with 1 if it is refused."""
    from toolkit.cli.documents import profiles as documents
    from toolkit.cli.output import print_findings, print_json, say
    from toolkit.jobs.slurm_answer import ask_slurm
    from toolkit.scheduler.programs import Scheduler

    found = _estimate(script.job, profile)
    answer = ask_slurm(script, directory) if profile is None or profile.scheduler is Scheduler.SLURM else None
    findings = [*findings, *([answer] if answer else [])]
    if json:
        print_json("ctk.estimate/1", documents.estimate(found, profile.name if profile else None), findings)
    else:
        for line in found.lines():
            say(line)
        print_findings(findings, stderr=True)
    if answer is not None and answer.severity is not Severity.OK:
        raise typer.Exit(1)


def _estimate(job: Job, profile: Profile | None) -> Estimate:
    from toolkit.scheduler.estimate import estimate
    from toolkit.scheduler.profile_places import Profiles

    return estimate(profile or Profiles.here().profile("slurm"), job)
