"""`ctk cluster`: cluster profiles, their check, and one written from the scheduler of this host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.completion import complete_cluster
from toolkit.cli.documents import profiles as documents
from toolkit.cli.output import print_findings, print_json, print_table, print_text, say, suggest
from toolkit.scheduler.programs import Scheduler
from toolkit.support.errors import MissingOnHost, ProgramFailed, WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from toolkit.scheduler.profiles import Partition, Profile

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
_Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE", help="A name of `ctk cluster list`, or a file.", autocompletion=complete_cluster
    ),
]

_Scheduler = Annotated[Scheduler | None, typer.Option("--scheduler", help="Scheduler to ask. [default: this host's]")]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="""Describe clusters: limits, GPUs, and how sites want requests.

    A cluster profile is a file NAME.toml in ./sbatch/clusters, in ~/.config/ctk/clusters, in the site's directory
    (`profiles` of site.toml), or shipped with ctk; the first one of a name counts. Use it with --cluster NAME.

        ctk cluster list
        ctk cluster show tsubame4
        ctk cluster detect mine      write ./sbatch/clusters/mine.toml from the scheduler of this host
        ctk sbatch -J try1 --image trial.sif --cluster mine --gpus 1 --time 1:00:00
    """,
)


@app.command("list")
def list_clusters(json: _Json = False) -> None:
    """Show the cluster profiles, and which one is used by default here.

    ctk cluster list
    """
    from toolkit.scheduler.profile_file import load_profile
    from toolkit.scheduler.profile_places import Profiles, choose, lab_profile
    from toolkit.support.settings import load_settings
    from toolkit.support.site import load_site

    site = load_site()
    chosen = choose(None, None, lab_profile(), load_settings(), site)
    default = chosen.name if chosen else None
    rows, findings = [], []
    for name, (path, owner) in Profiles.here(site).paths().items():
        profile = None
        try:
            profile = load_profile(path)
        except WrongInput as error:
            findings.append(Finding("invalid-profile", Severity.WARNING, error.message, error.fix))
        rows.append((name, path, owner, profile))
    if json:
        listed = [documents.listed(*row) for row in rows]
        print_json("ctk.clusters/1", {"default": default, "clusters": listed}, findings)
        return
    print_table(
        ("cluster", "from", "scheduler", "partitions", "description"),
        [_row(name, owner, profile, is_default=name == default) for name, _, owner, profile in rows],
    )
    print_findings(findings, stderr=True)
    if rows:
        suggest(["ctk", "cluster", "show", default or rows[0][0]])


def _row(name: str, owner: str, profile: Profile | None, *, is_default: bool) -> tuple[str, ...]:
    if profile is None:
        return (name, owner, "", "", "invalid")
    partitions = ", ".join(partition.name for partition in profile.partitions[:4])
    more = f", … ({len(profile.partitions)})" if len(profile.partitions) > 4 else ""
    description = f"{profile.description} (default)" if is_default else profile.description
    return (name, owner, profile.scheduler.value, partitions + more, description)


@app.command()
def show(name: _Name, json: _Json = False) -> None:
    """Show a cluster profile: its partitions with their limits, its GPUs, and how requests are written.

    ctk cluster show abci3
    """
    from toolkit.cli.clusters import profile_of

    profile = profile_of(name)
    if json:
        print_json("ctk.cluster/1", {"cluster": documents.profile(profile)})
        return
    _show(profile)
    suggest(
        ["ctk", "sbatch" if profile.scheduler is Scheduler.SLURM else "qsub", "--job-name", "try1", "--cluster", name]
    )


def _show(profile: Profile) -> None:
    document = documents.profile(profile)
    say(f"{profile.path}")
    texts = ("description", "scheduler", "checked", "proxy", "module_setup", "max_tasks", "price_unit")
    facts = [(key.replace("_", " "), str(document[key])) for key in texts if document[key]]
    lists = ("required", "modules", "binds", "arguments", "no_proxy")
    facts += [(key.replace("_", " "), ", ".join(document[key])) for key in lists if document[key]]
    if profile.internet is not None:
        facts.append(("internet", "yes" if profile.internet else "not on compute nodes"))
    facts += [(f"request for {request['part']}", request["template"]) for request in document["requests"]]
    print_table(("fact", "value"), facts)
    if profile.partitions:
        columns = ("partition", "time", "nodes", "cores", "memory", "GPUs", "price/h", "description")
        print_table(columns, [_partition_row(partition) for partition in profile.partitions])
    if profile.gpu_types:
        rows = [
            (gpu.type, gpu.model or "", gpu.capability or "", _size(gpu.memory), gpu.driver or "")
            for gpu in profile.gpu_types
        ]
        print_table(("GPU type", "model", "capability", "memory", "driver"), rows)
    for source in profile.sources:
        say(f"Source: {source}")


def _partition_row(partition: Partition) -> tuple[str, ...]:
    from toolkit.scheduler.needs import describe_time

    nodes = f"{partition.min_nodes or 1}-{partition.max_nodes or ''}" if partition.max_nodes != 1 else "1"
    gpus = "" if partition.gpus is None else f"{partition.gpus} {', '.join(partition.gpu_types)}".rstrip()
    return (
        f"{partition.name} (default)" if partition.is_default else partition.name,
        "" if partition.max_time is None else describe_time(partition.max_time),
        "" if partition.max_nodes is None and partition.min_nodes is None else nodes,
        str(partition.cores or ""),
        _size(partition.memory),
        gpus,
        "" if partition.price is None else f"{partition.price:g}",
        partition.description,
    )


def _size(size: int | None) -> str:
    from toolkit.scheduler.needs import describe_memory

    return "" if size is None else describe_memory(size)


@app.command()
def check(name: _Name, scheduler: _Scheduler = None, json: _Json = False) -> None:
    """Check a cluster profile, and compare it with the scheduler of this host.

    The file is read as for a job. If this host is a login node of such a scheduler, its partitions, limits and GPU
    types are compared with the profile.

        ctk cluster check mine

    Exit status 1: the profile and the scheduler differ, or a GPU type has a driver that does not know it.
    """
    from toolkit.cli.clusters import impossible_machines, missing_facts, profile_of
    from toolkit.scheduler.differences import differences
    from toolkit.scheduler.programs import host_scheduler

    profile = profile_of(name)
    findings = [*impossible_machines(profile), *(missing_facts(profile) if profile.gpu_types else ())]
    here, compared = scheduler or host_scheduler(), False
    if here is not profile.scheduler:
        found = f"has {here}" if here else "has no scheduler"
        message = f"not compared with a scheduler: the profile is for {profile.scheduler}, and this host {found}"
        findings.append(Finding("profile-not-compared", Severity.INFO, message))
    else:
        try:
            findings += differences(profile, _detected(profile.path, scheduler=here)[0])
            compared = True
        except (MissingOnHost, ProgramFailed) as error:
            message = f"not compared with a scheduler: {error.message}"
            fix = f"On a login node of the cluster: ctk cluster check {path_argument(Path(name))}"
            findings.append(Finding("profile-not-compared", Severity.INFO, message, fix))
    if json:
        document = {"cluster": profile.name, "path": str(profile.path), "compared": compared}
        print_json("ctk.cluster-check/1", document, findings)
    else:
        say(f"{profile.path}: valid{', compared with the scheduler of this host' if compared else ''}")
        print_findings(findings)
    if any(finding.severity is Severity.WARNING for finding in findings):
        raise typer.Exit(1)


@app.command()
def detect(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of the profile. [default: the cluster's own]")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Path of the file. [default: ./sbatch/clusters/NAME.toml]"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the profile; write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    scheduler: _Scheduler = None,
    json: _Json = False,
) -> None:
    """Write a cluster profile from the scheduler of this host.

    It asks sinfo, scontrol and sacctmgr (Slurm), qconf and qhost (Grid Engine), or pbsnodes and qstat (PBS) for
    partitions, limits, nodes and GPU types. They do not say which driver the nodes have, whether these reach the
    internet, and which modules a job needs: add what you know.

        ctk cluster detect mine
        ctk cluster detect mine --dry-run
    """
    from toolkit.scheduler.profile_file import NAME
    from toolkit.scheduler.profile_places import OWN
    from toolkit.support.files import refuse_link, write_atomically

    if name is not None and not NAME.fullmatch(name):
        raise WrongInput(f"{name!r} is not a valid name: use lower-case letters, digits, dots, hyphens and underscores")
    profile, text = _detected(output, name, scheduler)
    path = output or OWN / f"{profile.name}.toml"
    if not NAME.fullmatch(path.stem) or path.suffix != ".toml":
        raise WrongInput(f"--output should be a file NAME.toml with a lower-case name, not {str(path)!r}")
    if not dry_run:
        refuse_link(path)
        if path.exists() and not force:
            raise WrongInput(f"{path} already exists", fix="--force replaces it; --dry-run prints the profile.")
        if output is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    if json:
        print_json("ctk.cluster/1", {"cluster": documents.profile(replace(profile, path=path))})
        return
    if dry_run:
        print_text(text)
        return
    names = ", ".join(partition.name for partition in profile.partitions) or "none"
    say(f"{path}: {profile.scheduler}, partitions: {names}")
    say("Add what the scheduler does not say: the comments at the beginning of the file list it.")
    suggest(["ctk", "cluster", "show", path.stem if output is None else path_argument(path)])


def _detected(path: Path | None, name: str | None = None, scheduler: Scheduler | None = None) -> tuple[Profile, str]:
    """The profile that the scheduler of this host implies, and its text.

    Raises ProgramFailed if what it printed gives no profile that ctk itself can read.
    """
    import tempfile
    from datetime import datetime, timezone

    from toolkit.scheduler.asking import detect as ask
    from toolkit.scheduler.detection import comments, profile_from, profile_name
    from toolkit.scheduler.profile_file import load_profile
    from toolkit.scheduler.profile_text import profile_text
    from toolkit.support.files import write_atomically

    found = ask(scheduler)
    named = path or Path(f"{name or profile_name(found)}.toml")
    profile = profile_from(found, named, datetime.now(timezone.utc).date().isoformat())
    text = profile_text(profile, comments(found))
    with tempfile.TemporaryDirectory() as directory:
        written = Path(directory, "detected.toml")
        write_atomically(written, text, durable=False)
        try:
            load_profile(written)
        except WrongInput as error:
            reason = error.message.removeprefix(f"{directory}/")
            raise ProgramFailed(
                f"what {', '.join(found.programs)} printed gives no valid profile: {reason}", code="scheduler-output"
            ) from error
    return profile, text
