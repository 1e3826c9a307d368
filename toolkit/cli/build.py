"""`ctk build`: from a target to an image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_base, complete_recipe
from toolkit.cli.locks import lock_policy, say_lock_change
from toolkit.cli.next_step import next_for_image
from toolkit.cli.output import live_steps, print_findings, print_json, print_text, say, suggest
from toolkit.cli.skip import remember_skipped, with_skipped
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from toolkit.builds.execute import Built
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.record import Record
    from toolkit.support.paths import WorkArea

_COMPRESSIONS = ("zstd", "gzip")


def build(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A recipe's name, FILE.def, a sandbox folder (with a slash), docker://REF, docker-archive:FILE "
            "or oci:DIR.",
            autocompletion=complete_recipe,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Where the image goes. [default: ./NAME.sif]")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Start the recipe from this instead: a name of `ctk bases`, FILE.sif, a sandbox, docker://REF, "
            "docker-archive:FILE or oci:DIR.",
            autocompletion=complete_base,
        ),
    ] = None,
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Make a folder that can be changed, not a SIF.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Build although nothing changed; replace the output whatever it is, but no symlink's target.",
        ),
    ] = False,
    allow_file: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Let [[files]] copy this private file or directory; repeatable."),
    ] = None,
    allow_import_failure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Do not import this package at the end of the build, now and later ([imports] skip); repeatable.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact commands, run none.")] = False,
    locked: Annotated[
        bool,
        typer.Option("--locked", help="Refuse a missing or outdated lock (exit status 1): for CI and for papers."),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the output of the build as it runs.")] = False,
    compression: Annotated[
        str, typer.Option(metavar="zstd|gzip", help="gzip is slower; only kernels before 4.14 need it.")
    ] = "zstd",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Build an image from a recipe, a .def, a sandbox or a registry.

        ctk build keras-bert                 the recipe, to ./keras-bert.sif
        ctk build keras-bert --base my.sif   on an image that is here already
        ctk build demo --sandbox -o sb/      a folder to try things in
        ctk build sb/ -o out.sif             that folder, as it is, to an image

    A recipe's lock is written or updated first; versions that fit are kept. Where neither recipe, lock, base nor files
    changed since the image was built, nothing is built: --force builds again.

    No root is needed. An image that ctk built from the same target is replaced when the new one is whole; anything
    else of that name stays, unless --force. The log of the build is kept beside the image.

    At its end a build imports the packages of the recipe and the frameworks of the base, without a GPU. Where one
    fails, there is no image, and the exit status is 1. --allow-import-failure is for a package that needs a GPU or a
    licence file to be imported; the recipe remembers it. `ctk try` imports the same without building an image.

    An image that lacks the program of the recipe's [job] command is kept, and the exit status is 1.

    What [[files]] of a recipe copies from outside its project is listed first. The project is the directory that holds
    the recipe's defs/. A private file (mode 0600, ~/.ssh and the like) needs --allow-file.
    """
    from toolkit.builds.dry_run import planned_commands
    from toolkit.builds.execute import execute
    from toolkit.builds.plan import plan_build
    from toolkit.builds.prepare import prepare, preview, unchanged_record
    from toolkit.builds.target import parse_target
    from toolkit.inventory.programs import COMMAND_NOT_IN_IMAGE
    from toolkit.pins.store import Locks, Policy
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.outside import copied_files, judge, judge_base, require_allowed, without_allowed
    from toolkit.runtime.engine import BuildOptions, find_runtime
    from toolkit.support.mirror import debian_mirror
    from toolkit.support.paths import user_path
    from toolkit.support.site import load_site

    if compression not in _COMPRESSIONS:
        raise WrongInput(f"--compression is zstd or gzip, not {compression!r}")
    site = load_site()
    catalogue = Catalogue.here()

    def planned() -> BuildPlan:
        return plan_build(
            parse_target(target),
            catalogue,
            output=output,
            sandbox=sandbox,
            base=base,
            force=force,
        )

    plan = planned()
    if plan.recipe is not None:
        copied = without_allowed(copied_files(plan.recipe), [user_path(str(path)) for path in allow_file or ()])
        print_findings((*judge(copied), *(judge_base(plan.recipe) if base is None else ())), stderr=True)
        if not dry_run:
            require_allowed(plan.recipe, copied)
    if allow_import_failure:
        plan = with_skipped(plan, allow_import_failure)
        if plan.recipe is not None and not dry_run and remember_skipped(catalogue, plan.recipe):
            plan = planned()  # a shipped recipe is in ./defs now
    options = BuildOptions(sandbox, compression, site.cores.value if site.cores else None)
    runtime = find_runtime(site)
    area = open_work_area(site)
    policy = lock_policy(locked=locked, base=base, otherwise=Policy.PREVIEW if dry_run else Policy.UPDATE)
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True), policy)
    mirror = debian_mirror(site)
    if dry_run:
        with live_steps(f"Choosing the versions for {plan.output.name}"):
            plan = preview(plan, locks, mirror)
        _say_lock_change(plan, written=False)
        _print_plan(plan, planned_commands(plan, runtime, options), json=json)
        return
    if plan.link is not None:
        say(f"{plan.link} is a symlink: the image is written to {plan.output}.", stderr=True)
    if (record := unchanged_record(plan, locks, runtime, options, mirror=mirror)) is not None:
        _print_unchanged(plan, record, json=json)
        return
    _show_work_area(area)
    with live_steps(f"Building {plan.output.name}", lines=not verbose) as on_step:
        plan = prepare(plan, locks, runtime, area, options, mirror=mirror, on_step=on_step)
        _say_lock_change(plan, written=True)
        on_line = (lambda line: say(line, stderr=True)) if verbose else None
        built = execute(plan, runtime, area, options, on_step, on_line)
    _print_built(plan, built, json=json)
    if any(one.code == COMMAND_NOT_IN_IMAGE for one in built.findings):
        raise typer.Exit(1)


def _say_lock_change(plan: BuildPlan, *, written: bool) -> None:
    if plan.recipe is not None and plan.locked is not None and not plan.recipe.rebased:
        say_lock_change(plan.locked, plan.target.text, written=written)


def _print_plan(plan: BuildPlan, commands: list[str], *, json: bool) -> None:
    if json:
        text = plan.definition.text if plan.definition else None
        print_json("ctk.build-plan/1", {"output": str(plan.output), "commands": commands, "definition": text})
        return
    for command in commands:
        print_text(command)


def _print_unchanged(plan: BuildPlan, record: Record, *, json: bool) -> None:
    text = f"{_short(plan.output)} is up to date: recipe, lock, base and files are those that it was built from"
    if json:
        finding = Finding("nothing-changed", Severity.OK, text, "ctk build --force builds it again.")
        size = plan.output.stat().st_size
        print_json("ctk.build/1", {**_document(plan, record, size), "built": False, "seconds": 0.0}, [finding])
        return
    say(f"{text}; the audit said {record.verdict}. --force builds it again.", style="green")
    suggest(next_for_image(Path(_short(plan.output)), record.verdict))


def _document(plan: BuildPlan, record: Record, size: int) -> dict[str, Any]:
    change = plan.locked.change if plan.locked else None
    return {
        "output": str(plan.output),
        "verdict": record.verdict,
        "target": record.target,
        "base": record.base,
        "log": str(plan.log),
        "octets": size,
        "lock": change.as_json() if change else None,
    }


def _print_built(plan: BuildPlan, built: Built, *, json: bool) -> None:
    from toolkit.support.files import size_in_words

    if json:
        print_json(
            "ctk.build/1",
            {
                **_document(plan, built.record, built.size),
                "built": True,
                "seconds": round(built.seconds, 1),
                "import_seconds": built.import_seconds,
            },
            built.findings,
        )
        return
    size = f", {size_in_words(built.size)}" if built.size else ""
    grave = (Severity.ERROR, Severity.WARNING)
    print_findings(one for one in built.findings if one.severity in grave and one.code != built.record.verdict)
    say(
        f"Built {_short(built.output)} in {built.seconds:.0f} s{size}; the audit says {built.record.verdict}.",
        style="green",
    )
    if plan.sandbox:
        folder = f"{_short(built.output)}/"
        suggest(["ctk", "shell", folder], ["ctk", "build", folder, "-o", "NAME.sif"])
    else:
        suggest(next_for_image(Path(_short(built.output)), built.record.verdict))


def _short(path: Path) -> str:
    """A path as a person would type it here: with a slash, so that a folder is never taken for a recipe."""
    try:
        return f"./{path.relative_to(Path.cwd())}" if path.is_dir() else str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _show_work_area(area: WorkArea) -> None:
    if not area.path.exists():
        say(f"Everything big goes to {area.path} (chosen by {area.chosen_by}; CTK_HOME changes it).", stderr=True)
