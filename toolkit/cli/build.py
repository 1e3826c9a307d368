"""`ctk build`: from a target to an image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_base, complete_recipe
from toolkit.cli.documents.images import built_image
from toolkit.cli.locks import AllowBrokenBase, lock_policy, say_lock_change, say_others
from toolkit.cli.next_step import next_for_image
from toolkit.cli.output import build_listener, live_steps, print_findings, print_json, print_text, say, suggest
from toolkit.cli.skip import remember_skipped, with_skipped
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.builds.context import BuildContext
    from toolkit.builds.execute import Built
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.record import Record
    from toolkit.builds.request import BuildRequest
    from toolkit.recipes.model import Recipe
    from toolkit.support.paths import WorkArea

_COMPRESSIONS = ("zstd", "gzip")


def build(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A recipe's name, FILE.def, a sandbox directory (with a slash), docker://REF, docker-archive:FILE, "
            "oci:DIR, or IMAGE.sif with --flat.",
            autocompletion=complete_recipe,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Path of the image. [default: ./NAME.sif; ./NAME-flat.sif from IMAGE.sif]",
            rich_help_panel="Image",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Base to start from instead: a name that `ctk bases` lists, FILE.sif, a sandbox, docker://REF, "
            "docker-archive:FILE or oci:DIR.",
            autocompletion=complete_base,
            rich_help_panel="Image",
        ),
    ] = None,
    sandbox: Annotated[
        bool,
        typer.Option("--sandbox", help="Build a sandbox, a directory that can be changed.", rich_help_panel="Image"),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Build even if nothing has changed, and replace any output; a symlink's target is kept.",
            rich_help_panel="Image",
        ),
    ] = False,
    allow_file: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Let [[files]] copy this private file or directory; repeatable.",
            rich_help_panel="Checks",
        ),
    ] = None,
    allow_import_failure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Do not import this package at the end of this and later builds; repeatable.",
            rich_help_panel="Checks",
        ),
    ] = None,
    allow_broken_base: AllowBrokenBase = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the build as a script for `sh`; build nothing.")
    ] = False,
    locked: Annotated[
        bool,
        typer.Option(
            "--locked", help="Refuse a missing or outdated lock (exit status 1), as in CI.", rich_help_panel="Checks"
        ),
    ] = False,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Use only what is on this host (`ctk fetch`); steps get no network.",
            rich_help_panel="Checks",
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the output of the build as it runs.")] = False,
    compression: Annotated[
        str,
        typer.Option(
            metavar="zstd|gzip",
            help="Compression of the SIF; gzip is slower, for kernels before 4.14.",
            rich_help_panel="Image",
        ),
    ] = "zstd",
    layered: Annotated[
        bool | None,
        typer.Option(
            "--layered/--flat",
            help="Add layers to a copy of the base, which takes seconds; or pack one partition, the form for sharing. "
            "[default: layered where base and host allow it]",
            show_default=False,
            rich_help_panel="Image",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Build an image from a recipe, a .def, a sandbox or a registry.

        ctk build keras-bert                 the recipe, to ./keras-bert.sif
        ctk build keras-bert --base my.sif   on an image on this machine
        ctk build demo --sandbox -o sb/      a directory that you can change
        ctk build sb/ -o out.sif             an image of that directory, unchanged
        ctk build a.sif --flat -o b.sif      one partition of a layered image

    The recipe's lock is written or updated first; versions that still fit are kept. If recipe, lock, base and files
    are unchanged since the image was built, nothing is built; --force builds again.

    A recipe's image is layered where base and host allow it: a copy of the base with small layers, made in seconds.
    `ctk run` and job scripts do not start the program if a layer is missing. --flat makes one partition, for sharing.

    No root is needed. An image that ctk built from the same target is replaced when the new one is complete; any other
    file of that name is kept, unless you give --force. The log of the build is written next to the image.

    At the end, the build imports the recipe's packages and the base's frameworks, without a GPU. If an import fails,
    the build fails with exit status 1. --allow-import-failure is for a package that needs a GPU or a licence file to
    be imported; the recipe records it in [imports] skip. `ctk try` does the same imports without building an image.

    If the image lacks the program of the recipe's [job] command, it is kept, and the exit status is 1.

    Files that [[files]] copies from outside the project are listed first. The project is the directory that contains
    the recipe's defs/. A private file (mode 0600, ~/.ssh and the like) needs --allow-file.
    """
    from toolkit.builds.asking import request_build
    from toolkit.builds.context import BuildContext
    from toolkit.builds.offline import require_fetched
    from toolkit.builds.resolve import resolve, unchanged_record
    from toolkit.builds.target import parse_target
    from toolkit.cli.cache import prune_after_build
    from toolkit.inventory.contents.programs import COMMAND_NOT_IN_IMAGE
    from toolkit.pins.store import Locks, Policy
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.evidence import judge_record
    from toolkit.recipes.outside import copied_files, judge_base, judge_copies, require_allowed, without_allowed
    from toolkit.recipes.owners import judge_owners
    from toolkit.runtime.engine import BuildOptions, find_runtime
    from toolkit.support.mirror import debian_mirror
    from toolkit.support.paths import user_path
    from toolkit.support.site import load_site

    if compression not in _COMPRESSIONS:
        raise WrongInput(f"--compression is zstd or gzip, not {compression!r}")
    if dry_run and layered:
        raise WrongInput("--dry-run prints the build of a flat image", fix="Omit --layered, or --dry-run.")
    site = load_site()
    catalogue = Catalogue.here()
    cores, memory = (setting.value if setting else None for setting in (site.cores, site.memory))
    options = BuildOptions(sandbox, compression, cores, layered, memory)

    def asked() -> BuildRequest:
        parsed = parse_target(target, flat=layered is False)
        return request_build(parsed, catalogue, options, output=output, base=base, force=force)

    request, not_allowed = asked(), None
    owners = judge_owners(catalogue, request.recipe.name) if request.recipe is not None else ()
    print_findings(owners, stderr=True)
    if request.recipe is not None:
        print_findings(judge_record(request.recipe.base, allow_broken=allow_broken_base), stderr=True)
        copied = without_allowed(copied_files(request.recipe), [user_path(str(path)) for path in allow_file or ()])
        print_findings((*judge_copies(copied), *(judge_base(request.recipe) if base is None else ())), stderr=True)
        try:
            require_allowed(request.recipe, copied)
        except WrongInput as error:
            if not dry_run:
                raise
            not_allowed = error
    if allow_import_failure:
        request = with_skipped(request, allow_import_failure)
        if request.recipe is not None and not dry_run and remember_skipped(catalogue, request.recipe):
            request = asked()  # a shipped recipe is in ./defs now
    runtime = find_runtime(site)
    area = open_work_area(site)
    policy = lock_policy(locked=locked, base=base, otherwise=Policy.PREVIEW if dry_run else Policy.UPDATE)
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True), policy)
    context = BuildContext(runtime, area, locks, debian_mirror(site), preview=dry_run, site=site, offline=offline)
    if dry_run:
        with live_steps(f"Choosing the versions for {request.output.name}"):
            plan = resolve(request, context)
        _say_lock_change(plan, written=False)
        _print_plan(plan, context, not_allowed, owners, json=json)
        return
    if request.link is not None:
        say(f"{request.link} is a symlink: the image is written to {request.output}.", stderr=True)
    if (record := unchanged_record(request, context)) is not None:
        _print_unchanged(request, record, owners, json=json)
        return
    require_fetched(request, context)
    from toolkit.builds.execute import execute  # what an image that is up to date does not need

    _show_work_area(area)
    with live_steps(f"Building {request.output.name}", lines=not verbose) as on_step:
        listener = build_listener(on_step, verbose=verbose)
        plan = resolve(request, context, listener)
        _say_lock_change(plan, written=True)
        if request.recipe is not None and plan.locked is not None:
            say_others(plan.locked, locks, request.recipe)
        built = execute(plan, context, listener)
    _print_built(plan, built, owners, json=json)
    prune_after_build(area, site)
    if any(finding.code == COMMAND_NOT_IN_IMAGE for finding in built.findings):
        raise typer.Exit(1)


def _say_lock_change(plan: BuildPlan, *, written: bool) -> None:
    recipe = plan.request.recipe
    if recipe is not None and plan.locked is not None and not recipe.rebased:
        say_lock_change(plan.locked, recipe.name, written=written)


def _print_plan(
    plan: BuildPlan, context: BuildContext, not_allowed: WrongInput | None, owners: Sequence[Finding], *, json: bool
) -> None:
    from toolkit.builds.plan import OwnSource
    from toolkit.builds.script import as_script, build_commands, refused

    if plan.locked is not None and plan.base.image is None and plan.request.recipe is not None:
        _say_base_not_here(plan.request.recipe)
    commands = [*([refused(not_allowed)] if not_allowed is not None else []), *build_commands(plan, context)]
    if json:
        text = None if isinstance(plan.source, OwnSource) else plan.source.text
        document = {"output": str(plan.request.output), "commands": commands, "definition": text}
        print_json("ctk.build-plan/1", document, owners)
    else:
        print_text(as_script(commands, plan.record.target))


def _say_base_not_here(recipe: Recipe) -> None:
    if recipe.base.bootstrap != Bootstrap.DEBOOTSTRAP:
        say(
            f"The base {recipe.base.name} is not on this machine: versions are chosen from its entry "
            "in bases.toml, and the script uses pip instead of uv. `ctk build` pulls the base first.",
            stderr=True,
        )


def _print_unchanged(request: BuildRequest, record: Record, owners: Sequence[Finding], *, json: bool) -> None:
    text = f"{_short(request.output)} is up to date: recipe, lock, base and files are unchanged since it was built"
    if json:
        finding = Finding("nothing-changed", Severity.OK, text, "ctk build --force rebuilds it.")
        size = request.output.stat().st_size
        document = built_image(request.output, request.log, record, size, change=None)
        print_json("ctk.build/1", document, [*owners, finding])
        return
    say(f"{text}; audit verdict: {record.verdict}. --force rebuilds it.", style="green")
    suggest(next_for_image(Path(_short(request.output)), record.verdict))


def _print_built(plan: BuildPlan, built: Built, owners: Sequence[Finding], *, json: bool) -> None:
    from toolkit.support.files import format_size
    from toolkit.support.text import count

    change = plan.locked.change if plan.locked else None
    if json:
        document = built_image(
            built.output,
            built.log,
            built.record,
            built.size,
            change,
            built=True,
            seconds=built.seconds,
            import_seconds=built.import_seconds,
        )
        print_json("ctk.build/1", document, [*owners, *built.findings])
        return
    size = f", {format_size(built.size)}" if built.size else ""
    grave = (Severity.ERROR, Severity.WARNING)
    print_findings(
        finding for finding in built.findings if finding.severity in grave and finding.code != built.record.verdict
    )
    say(
        f"Built {_short(built.output)} in {built.seconds:.0f} s{size}; audit verdict: {built.record.verdict}.",
        style="green",
    )
    if built.record.layers:
        layers = count(len(built.record.layers), "layer")
        say(f"It is a layered image, with {layers} over its base. To share an image, build it with --flat.")
    elif built.form.reason is not None:
        say(f"It is a flat image: {built.form.reason}.")
    if plan.request.sandbox:
        directory = f"{_short(built.output)}/"
        suggest(["ctk", "shell", directory], ["ctk", "build", directory, "-o", "NAME.sif"])
    else:
        suggest(next_for_image(Path(_short(built.output)), built.record.verdict))


def _short(path: Path) -> str:
    """A path as a user would type it here: with a slash, so that a directory is never taken for a recipe."""
    try:
        return f"./{path.relative_to(Path.cwd())}" if path.is_dir() else str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _show_work_area(area: WorkArea) -> None:
    if not area.path.exists():
        say(
            f"Large files are stored in {area.path} (chosen by {area.chosen_by}; set CTK_HOME to change it).",
            stderr=True,
        )
