"""`ctk sbatch`: write a job script, and submit it if requested."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.cluster_jobs import ClusterOfJob, EstimateOption, on_cluster, profile_for, show_estimate, target_on
from toolkit.cli.completion import complete_recipe
from toolkit.cli.documents import clusters as documents
from toolkit.cli.output import print_findings, print_json, print_text, say, suggest
from toolkit.jobs.model import GateKind
from toolkit.support.errors import WrongInput
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from toolkit.jobs.defaults import JobRequest
    from toolkit.jobs.model import Job, Script, Submission
    from toolkit.recipes.model import Recipe, Target
    from toolkit.support.findings import Finding


def sbatch(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[--] COMMAND...", help="Command to run in the image.")
    ] = None,
    job_name: Annotated[
        str | None,
        typer.Option(
            "--job-name",
            "-J",
            metavar="NAME",
            help="Name of the job. [default: the recipe's or the image's]",
            rich_help_panel="Job",
        ),
    ] = None,
    image: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="SIF or sandbox. [default: the recipe's, else the only .sif here]",
            rich_help_panel="Job",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE",
            help="Recipe whose [job] gives defaults. [default: the one with the job's name, else the image's]",
            autocompletion=complete_recipe,
            rich_help_panel="Job",
        ),
    ] = None,
    gpus: Annotated[
        str | None,
        typer.Option(
            metavar="N|TYPE:N",
            help="GPUs for the whole job, such as 1 or tesla:1; 0 means CPU only.",
            rich_help_panel="Resources",
        ),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", help="Number of nodes.", rich_help_panel="Resources")
    ] = None,
    tasks_per_node: Annotated[
        int | None,
        typer.Option(
            "--ntasks-per-node",
            metavar="N",
            help="Tasks on each node, started by srun.",
            rich_help_panel="Resources",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT", help="Time limit: 4:00:00, 30 (minutes), 2-12 (days-hours).", rich_help_panel="Resources"
        ),
    ] = None,
    mem: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory per node, such as 16G.", rich_help_panel="Resources")
    ] = None,
    cpus_per_task: Annotated[
        int | None, typer.Option(metavar="N", help="CPUs per task.", rich_help_panel="Resources")
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="Partition (queue).", rich_help_panel="Resources")
    ] = None,
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="Account to charge.", rich_help_panel="Resources")
    ] = None,
    qos: Annotated[
        str | None, typer.Option(metavar="NAME", help="Quality of service.", rich_help_panel="Resources")
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Job array: 0-9, or 0-99%8 for eight tasks at a time.", rich_help_panel="Resources"
        ),
    ] = None,
    cluster: ClusterOfJob = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SRC[:DST[:ro]]", help="Bind a directory of the host; repeatable.", rich_help_panel="Container"
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]",
            help="Set a variable in the container. Default: its value in the job. Repeatable.",
            rich_help_panel="Container",
        ),
    ] = None,
    env_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of lines NAME=VALUE for secrets, readable only by you.",
            rich_help_panel="Container",
        ),
    ] = None,
    shell: Annotated[
        str | None,
        typer.Option(
            metavar="LINE", help="Command line for the image's shell, instead of COMMAND.", rich_help_panel="Job"
        ),
    ] = None,
    directive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="--OPTION=VALUE",
            help="Any other #SBATCH line that your site needs; repeatable.",
            rich_help_panel="Resources",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Path of the script. [default: ./NAME.sbatch]",
            rich_help_panel="Script",
        ),
    ] = None,
    gpu_gate: Annotated[
        bool,
        typer.Option(
            "--gpu-gate/--no-gpu-gate",
            help="Check the GPU on each node before the program starts.",
            rich_help_panel="GPU checks",
        ),
    ] = True,
    gate: Annotated[
        GateKind,
        typer.Option(help="What that check asks; framework: compute on the GPU, too.", rich_help_panel="GPU checks"),
    ] = GateKind.DRIVER,
    gpu_monitor: Annotated[
        bool,
        typer.Option("--gpu-monitor", help="End the log with the use of each GPU.", rich_help_panel="GPU checks"),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Write the script in any case: over any file of that name, for any image.",
            rich_help_panel="Script",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the script; write nothing.", rich_help_panel="Script")
    ] = False,
    estimate: EstimateOption = False,
    submit: Annotated[
        bool, typer.Option("--submit", help="Submit the script and print the job ID.", rich_help_panel="Script")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write a Slurm job script that cannot lose its log.

        ctk sbatch --job-name keras-bert                      image, command, GPUs and time from the recipe
        ctk sbatch -J try1 --image trial.sif --gpus tesla:1 --time 2:00:00 python train.py --lr 0.1
        ctk sbatch -J sweep --image trial.sif --array 0-9     ten small jobs instead of one big one

    Submit the script with plain `sbatch NAME.sbatch` from this directory. All output of the job and of Slurm is written
    to logs/NAME-ID.log; logs/ does not need to exist. Pass any other option that your site requires as a directive:
    --directive=--constraint=a100.

    Options of ctk come before the command; all words after the command's name belong to the command. They are not
    expanded by a shell on the node; use --shell 'LINE' for variables of the job, pipes and the like. Give --env the
    name of a secret without its value, or put it into a file for --env-file: others can read the script.

    A job that asks for GPUs checks them on each node before the program starts, and ends if they cannot be used: within
    seconds; if the driver hangs, after 60 seconds; with --gate framework, after at most 300 seconds more. An image that
    cannot use a GPU is refused for such a job.

    A script that you have changed is kept, unless you give --force.

    With a cluster profile (--cluster, or that of the recipe, yours or the site's), a request that the cluster does not
    allow is refused, and the nearest one that it allows is named. --estimate prints what the job costs at most.
    """
    from toolkit.inventory.contents.programs import COMMAND_NOT_IN_IMAGE
    from toolkit.jobs.advice import VARIABLE_NOT_SET, advise
    from toolkit.jobs.defaults import JobRequest, check_gpu_options
    from toolkit.jobs.place import check_place
    from toolkit.jobs.scripts import check_script_file, make_script, write_script
    from toolkit.jobs.submission import submit as submit_script
    from toolkit.recipes.model import Target
    from toolkit.runtime.binds import hidden_links
    from toolkit.runtime.commands import chosen_command
    from toolkit.scheduler.programs import Scheduler

    directory = Path.cwd()
    request = JobRequest(
        command=chosen_command(tuple(command or ()), shell),
        resources={
            "gpus": gpus,
            "nodes": nodes,
            "tasks_per_node": tasks_per_node,
            "time": time,
            "mem": mem,
            "cpus_per_task": cpus_per_task,
            "partition": partition,
            "account": account,
            "qos": qos,
            "array": array,
        },
        binds=tuple(bind or ()),
        environment=tuple(env or ()),
        env_file=env_file,
        directives=tuple(directive or ()),
        gate=gpu_gate,
        monitor=gpu_monitor,
    )
    job, recipe_read, doubts = _job(request, job_name, image, recipe, directory)
    profile = profile_for(cluster, recipe_read, [Scheduler.SLURM], "ctk sbatch")
    job, refused = on_cluster(job, profile, directory, force=force)
    doubts = (*doubts, *refused)
    target = target_on(job, profile, recipe_read.target if recipe_read else Target())
    check_gpu_options(job, gate)
    if gate is GateKind.FRAMEWORK and job.uses_gpu:
        from toolkit.cli.job_audit import framework_check

        job = replace(job, gate_check=framework_check(directory / job.image, target))
    script = make_script(job, output or Path(f"{job.name}.sbatch"))
    if not force and not dry_run and not estimate:
        check_script_file(script)
    doubts = (*doubts, *check_place(directory, job.name), *advise(job, directory, Path.exists, os.environ))
    doubts = _image_findings(job, directory, target, doubts, force=force, dry_run=dry_run or estimate)
    findings = (*doubts, *hidden_links(directory, job.binds))
    if estimate:
        show_estimate(script, profile, directory, findings, json=json)
        return
    if dry_run:
        _show(script, findings, json=json)
        return
    write_script(script, force=force)
    hopeless = [finding for finding in findings if finding.code in (VARIABLE_NOT_SET, COMMAND_NOT_IN_IMAGE)]
    if submit and hopeless:
        raise WrongInput(
            f"the job was not submitted, because it would fail at once: {hopeless[0].message}",
            fix=hopeless[0].fix,
            code=hopeless[0].code,
        )
    _report(script, submit_script(script, directory) if submit else None, findings, json=json)


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
        message = missing.message if dry_run else f"{missing.message}; the script was written"
        findings = (replace(missing, severity=Severity.WARNING, message=message), *findings)
    return audit_for_job(job, directory, target, findings, words=sys.argv[1:], force=force)


def _job(
    request: JobRequest, name: str | None, image: Path | None, recipe_name: str | None, directory: Path
) -> tuple[Job, Recipe | None, tuple[Finding, ...]]:
    """The job, from the command line, the recipe, the image and the directory; the recipe; and what is doubtful."""
    from toolkit.builds.record import recipe_of
    from toolkit.inventory.formats.kinds import existing_image
    from toolkit.inventory.formats.layers import layers_of
    from toolkit.jobs.advice import advise_on_image
    from toolkit.jobs.defaults import choose_image, complete
    from toolkit.jobs.values import check_name, name_for
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.support.namespace import root_needs_userns
    from toolkit.support.site import load_site

    if name is not None:
        check_name(name)
    site = load_site()
    catalogue = Catalogue.here()
    wanted = recipe_name or (name if name in catalogue.paths() else None)
    recipe = catalogue.recipe(wanted) if wanted else None
    chosen = existing_image(choose_image(image, name, recipe, directory))
    doubts = advise_on_image(chosen, recipe, given=image is not None)
    recipe = recipe or recipe_of(chosen, catalogue)
    if recipe is not None:
        from toolkit.builds.outdated import outdated

        doubts = (*doubts, *filter(None, [outdated(chosen, recipe, catalogue.own)]))
    job = complete(
        request,
        name=name or recipe_name or name_for(chosen.stem),
        image=chosen,
        recipe=recipe,
        directory=directory,
        runtime=site.runtime.value if site.runtime else None,
        userns=root_needs_userns(),
    )
    job = replace(job, layers=layers_of(chosen))
    return job, recipe, doubts


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
    job = script.job
    say(f"{script.path}: {shlex.join(job.command)} in {job.image}, {_resources(job)}")
    print_findings(findings, stderr=True)
    if submission is None:
        suggest(["sbatch", path_argument(script.path)])
        return
    say(f"Submitted as job {submission.job_id}; its log: {job.log(submission.job_id)}")
    suggest("squeue --me", ["tail", "-F", job.first_log(submission.job_id)])


def _resources(job: Job) -> str:
    words = [
        f"GPUs: {job.gpus}" if job.gpus and job.gpus.count else "GPUs as in --directive" if job.uses_gpu else "CPU"
    ]
    return ", ".join([*words, f"log: {job.log()}"])
