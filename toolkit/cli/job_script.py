"""What `ctk sbatch`, `ctk qsub` and `ctk script` do: write a job script for a scheduler, and submit it if requested."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.cli.cluster_jobs import on_cluster, profile_for, show_estimate, target_on
from toolkit.cli.documents import clusters as documents
from toolkit.cli.output import print_findings, print_json, print_text, say, suggest
from toolkit.cli.used_image import used_image
from toolkit.jobs.model import GateKind
from toolkit.scheduler.programs import Scheduler
from toolkit.support.errors import WrongInput
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from toolkit.jobs.defaults import JobRequest
    from toolkit.jobs.dialects.dialect import Dialect
    from toolkit.jobs.model import Job, Script, Submission
    from toolkit.recipes.model import Target
    from toolkit.scheduler.profiles import Profile
    from toolkit.support.findings import Finding

# As people name logs: %j and the like of Slurm, $JOB_ID of Grid Engine.
_LOG_NAME = re.compile(r"%\w|\$|\.(?:log|out|err)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """The options of the command line, as `toolkit.cli.job_options` describes them."""

    command: list[str] | None
    job_name: str | None
    image: Path | None
    recipe: str | None
    gpus: str | None
    nodes: int | None
    tasks_per_node: int | None
    time: str | None
    mem: str | None
    cpus_per_task: int | None
    partition: str | None
    account: str | None
    qos: str | None
    array: str | None
    bind: list[str] | None
    env: list[str] | None
    env_file: Path | None
    shell: str | None
    directive: list[str] | None
    output: Path | None
    gpu_gate: bool
    gate: GateKind
    gpu_monitor: bool
    bind_links: bool
    results: bool
    node_tmp: bool
    line_buffered: bool
    template: Path | None
    force: bool
    dry_run: bool
    submit: bool
    json: bool
    cluster: str | None = None
    estimate: bool = False
    request: str | None = None
    group: str | None = None
    module: list[str] | None = None
    ntasks: int | None = None
    constraint: str | None = None
    not_secret: list[str] | None = None

    def job_request(self) -> JobRequest:
        """The job that they describe, unchecked."""
        from toolkit.jobs.defaults import JobRequest
        from toolkit.runtime.commands import chosen_command
        from toolkit.scheduler.resources import OPTIONS
        from toolkit.scheduler.values import check_constraint

        features = () if self.constraint is None else (f"--constraint={check_constraint(self.constraint)}",)
        return JobRequest(
            command=chosen_command(tuple(self.command or ()), self.shell),
            resources={key: getattr(self, key) for key in OPTIONS},
            ntasks=self.ntasks,
            binds=tuple(self.bind or ()),
            modules=tuple(self.module or ()),
            environment=tuple(self.env or ()),
            env_file=self.env_file,
            directives=(*(self.directive or ()), *features),
            gate=self.gpu_gate,
            monitor=self.gpu_monitor,
            results=self.results,
            node_tmp=self.node_tmp,
            line_buffered=self.line_buffered,
            request=self.request,
            group=self.group,
            not_secret=tuple(self.not_secret or ()),
        )


def write_job(options: JobOptions, dialect: Dialect) -> None:
    """Write the script that `options` ask for in the language of `dialect`, and submit it if they say so."""
    from toolkit.inventory.contents.programs import COMMAND_NOT_IN_IMAGE, require_line_buffering
    from toolkit.jobs.advice import VARIABLE_NOT_SET, advise
    from toolkit.jobs.defaults import check_gpu_options
    from toolkit.jobs.place import check_place
    from toolkit.jobs.scripts import check_script_file, make_script, write_script
    from toolkit.jobs.submission import submit as submit_script
    from toolkit.runtime.binds import hidden_links

    if options.estimate and (options.submit or options.dry_run):
        raise WrongInput("--estimate writes and submits nothing", fix="Omit --submit and --dry-run.")
    if options.output and _LOG_NAME.search(options.output.name):
        raise WrongInput(
            f"--output {options.output} looks like a log; in ctk it is the path of the script",
            fix=f"Omit it: the log is always logs/NAME-ID.log. To name the script: --output NAME{dialect.words.suffix}",
            code="wrong-usage",
        )
    directory = Path.cwd()
    force, dry_run, gate = options.force, options.dry_run, options.gate
    job, profile, target, doubts = _job(options, dialect, directory)
    check_gpu_options(job, gate)
    dialect.check(job)
    if job.line_buffered:
        require_line_buffering(directory / job.image)
    if gate is GateKind.FRAMEWORK and job.uses_gpu:
        from toolkit.cli.job_audit import framework_check

        job = replace(job, gate_check=framework_check(directory / job.image, target))
    path = options.output or Path(f"{job.name}{dialect.words.suffix}")
    script = make_script(job, path, dialect, options.template)
    if not force and not dry_run and not options.estimate:
        check_script_file(script)
    doubts = (
        *doubts,
        *check_place(directory, job.name, dialect.words.title),
        *advise(job, directory, Path.exists, os.environ, dialect.words),
    )
    doubts = _image_findings(job, directory, target, doubts, force=force, dry_run=dry_run or options.estimate)
    findings = (*doubts, *hidden_links(directory, job.binds))
    if options.estimate:
        show_estimate(script, profile, directory, findings, json=options.json)
        return
    if dry_run:
        _show(script, findings, json=options.json)
        return
    write_script(script, force=force)
    hopeless = [finding for finding in findings if finding.code in (VARIABLE_NOT_SET, COMMAND_NOT_IN_IMAGE)]
    if options.submit and hopeless:
        raise WrongInput(
            f"the job was not submitted, because it would fail at once: {hopeless[0].message}",
            fix=hopeless[0].fix,
            code=hopeless[0].code,
        )
    submission = submit_script(script, directory) if options.submit else None
    if submission is not None and not (profile and profile.partitions) and script.scheduler is Scheduler.SLURM:
        from toolkit.jobs.slurm_answer import ask_limits

        findings = (*findings, *ask_limits(job, submission.job_id))
    _report(script, submission, findings, json=options.json)


def _image_findings(
    job: Job, directory: Path, target: Target, findings: tuple[Finding, ...], *, force: bool, dry_run: bool
) -> tuple[Finding, ...]:
    """`findings` with what the image adds: whether it holds the program, and whether it can use a GPU."""
    from toolkit.cli.job_audit import audit_for_job
    from toolkit.inventory.contents.programs import missing_program
    from toolkit.support.findings import Severity

    try:
        missing = missing_program(directory / job.image, job.command, job.binds)
    except WrongInput:  # an image that the runtime can start and ctk cannot read
        return findings
    if missing is not None:
        fix = _not_a_command(job.command, directory)
        if fix is not None and not force:  # a script for it would only replace a good one
            raise WrongInput(missing.message, fix=fix, code=missing.code)
        message = missing.message if dry_run else f"{missing.message}; the script was written"
        findings = (replace(missing, severity=Severity.WARNING, message=message), *findings)
    return audit_for_job(job, directory, target, findings, words=sys.argv[1:], force=force)


def _not_a_command(command: tuple[str, ...], directory: Path) -> str | None:
    """What to write for a command that is the name of a recipe, or a file here; None if it is neither."""
    from toolkit.recipes.catalogue import Catalogue

    word, suffix = shlex.quote(command[0]), Path(command[0]).suffix
    if len(command) == 1 and command[0] in Catalogue.here().paths():
        return f"{word} is a recipe. For its job: --job-name {word}, and no command."
    if "/" in command[0] or not (directory / command[0]).is_file():
        return None
    rest = f" {shlex.join(command[1:])}" if command[1:] else ""
    if command[0].endswith(".sif"):
        return f"{word} is an image. For a job in it: --image {word}{rest}"
    if suffix in (".sbatch", ".pbs", ".sge"):
        return f"{word} is a job script. Submit it: {'sbatch' if suffix == '.sbatch' else 'qsub'} {word}"
    return f"{word} is a file here. To run it: {'python' if suffix == '.py' else 'bash'} {word}{rest}"


def _job(
    options: JobOptions, dialect: Dialect, directory: Path
) -> tuple[Job, Profile | None, Target, tuple[Finding, ...]]:
    """The job, from the command line, the recipe, the image and the directory; its cluster and its machine; and what is
    doubtful.
    """
    from toolkit.builds.provenance import provenance_lines
    from toolkit.builds.record import recipe_of
    from toolkit.inventory.formats.layers import layers_of
    from toolkit.jobs.advice import advise_on_image, advise_on_owners, advise_on_values
    from toolkit.jobs.defaults import choose_image, complete
    from toolkit.jobs.values import check_name, name_for
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Target
    from toolkit.runtime.binds import links_to_bind
    from toolkit.scheduler.profile_places import Profiles
    from toolkit.scheduler.requests import NO_TEMPLATES
    from toolkit.support.namespace import root_needs_userns
    from toolkit.support.site import load_site

    name = options.job_name
    if name is not None:
        check_name(name)
    site = load_site()
    catalogue = Catalogue.here()
    wanted = options.recipe or (name if name in catalogue.paths() else None)
    recipe = catalogue.recipe(wanted) if wanted else None
    chosen = choose_image(options.image, name, recipe, directory)
    doubts = (*used_image(chosen, "the job"), *advise_on_image(chosen, recipe, given=options.image is not None))
    recipe = recipe or recipe_of(chosen, catalogue)
    if recipe is not None:
        from toolkit.builds.outdated import outdated

        doubts = (*doubts, *filter(None, [outdated(chosen, recipe, catalogue.own)]))
    request = options.job_request()
    typed = {key: value for key, value in request.resources.items() if value is not None}
    doubts = (*doubts, *advise_on_values({**(recipe.job.resources if recipe else {}), **typed}))
    profile, other = profile_for(options.cluster, recipe, dialect.words)
    read = [options.template] if options.template else []
    read += [profile.path] if profile and not Profiles.here(site).is_of_site(profile.path) else []
    read += [recipe.path] if recipe and recipe.path.parent == catalogue.own != catalogue.shipped else []
    doubts = (*doubts, *advise_on_owners(read))
    job = complete(
        request,
        name=name or options.recipe or name_for(chosen.stem),
        image=chosen,
        recipe=recipe,
        directory=directory,
        runtime=site.runtime.value if site.runtime else None,
        userns=root_needs_userns(),
        dialect=dialect,
        requests=profile.requests if profile else NO_TEMPLATES,
    )
    job, refused = on_cluster(job, profile, directory, force=options.force)
    binds = links_to_bind(directory, job.binds) if options.bind_links else ()
    layers = layers_of(chosen)
    job = replace(job, layers=layers, binds=(*job.binds, *binds), provenance=provenance_lines(chosen, layers.uuid))
    target = target_on(job, profile, recipe.target if recipe else Target())
    return job, profile, target, (*doubts, *other, *refused)


def _show(script: Script, findings: tuple[Finding, ...], *, json: bool) -> None:
    if json:
        print_json("ctk.script/1", documents.script(script, None, written=False), findings)
        return
    print_text(script.text)
    print_findings(findings, stderr=True)


def _report(script: Script, submission: Submission | None, findings: tuple[Finding, ...], *, json: bool) -> None:
    if json:
        print_json("ctk.script/1", documents.script(script, submission, written=True), findings)
        return
    from toolkit.jobs.submission import submit_command

    job = script.job
    say(f"{script.path}: {shlex.join(job.command)} in {job.image}, {_resources(job)}")
    print_findings(findings, stderr=True)
    if submission is None:
        suggest([*submit_command(script), path_argument(script.path)])
        return
    say(f"Submitted as job {submission.job_id}; its log: {job.log(submission.job_id)}")
    queue = "squeue --me" if script.scheduler is Scheduler.SLURM else "qstat"
    suggest(queue, ["tail", "-F", job.first_log(submission.job_id)])


def _resources(job: Job) -> str:
    words = [
        f"GPUs: {job.gpus}" if job.gpus and job.gpus.count else "GPUs as in --directive" if job.uses_gpu else "CPU"
    ]
    return ", ".join([*words, f"log: {job.log()}"])
