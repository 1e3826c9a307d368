"""`ctk fetch`: what builds need from the network, for `ctk build --offline`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_recipe
from toolkit.cli.copies import AllowFile, require_copies
from toolkit.cli.documents.recipes import fetched_recipes
from toolkit.cli.locks import AllowBrokenBase, lock_policy, say_lock_change
from toolkit.cli.output import print_findings, print_json, say, show_error, suggest
from toolkit.cli.progress import Display
from toolkit.cli.stores import tell_once, tell_unused
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.os_errors import from_os_error
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.builds.fetching import Fetched
    from toolkit.recipes.catalogue import Catalogue


def fetch(
    recipes: Annotated[
        list[str], typer.Argument(metavar="RECIPE...", help="Names of recipes.", autocompletion=complete_recipe)
    ],
    locked: Annotated[
        bool, typer.Option("--locked", help="Refuse a missing or outdated lock (exit status 1), as in CI.")
    ] = False,
    allow_file: AllowFile = None,
    allow_broken_base: AllowBrokenBase = False,
    layers: Annotated[
        bool, typer.Option("--layers", help="Run the steps of the build, too, and keep their layers.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what is missing; download nothing.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print the output of pulls and steps as they run.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Download what builds need, for hosts without a network.

    The base is pulled, the lock is written or updated as by `ctk build`, and the package files of the lock are
    downloaded into the store in the work area, each checked by its hash. What is there already is not downloaded again.

        ctk fetch keras-bert               on a login node, which has a network
        ctk build keras-bert --offline     on a compute node, with the same work area

    Packages of `apt`, and packages at an address or a commit (git+https), are no files of the lock: for these, the
    steps of the build are run and their layers are kept. Where layers are not possible, the command lists what a build
    still takes from the network, and exits with status 1. A `post` that downloads something needs --layers. A private
    file in [[files]] needs --allow-file, as in `ctk build`.

    Several recipes are fetched one after another; one that fails does not stop the others. The exit status is then that
    of the first one that failed.
    """
    from toolkit.builds.asking import request_build
    from toolkit.builds.context import BuildContext
    from toolkit.builds.fetching import fetch as run_fetch
    from toolkit.builds.target import BuildTarget, TargetKind
    from toolkit.pins.store import Locks, Policy
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.evidence import judge_record
    from toolkit.recipes.owners import judge_owners
    from toolkit.runtime.area import scratch_of
    from toolkit.runtime.engine import BuildOptions, find_runtime
    from toolkit.support.mirror import debian_mirror
    from toolkit.support.site import load_site

    catalogue = Catalogue.here()
    names = list(dict.fromkeys(recipes))
    for name in names:
        _require_name(name, catalogue)
    site = load_site()
    runtime = find_runtime(site)
    area = open_work_area(site)
    area.create()
    policy = lock_policy(locked=locked, base=None, otherwise=Policy.PREVIEW if dry_run else Policy.UPDATE)
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True), policy)
    context = BuildContext(runtime, area, locks, debian_mirror(site), preview=dry_run, site=site, note=tell_once)
    findings = tell_unused(context.store)
    options = replace(BuildOptions.of_site(site), layered=(layers and not dry_run) or None)
    done: list[Fetched] = []
    errors: dict[str, CtkError] = {}
    for number, name in enumerate(names, start=1):
        if len(names) > 1:
            say(f"{name} ({number} of {len(names)}):", style="bold", stderr=True)
        try:
            # Nothing is written there: the image is no part of this.
            target = BuildTarget(TargetKind.RECIPE, name)
            request = request_build(target, catalogue, options, output=scratch_of(area) / f"{name}.sif")
            assert request.recipe is not None  # noqa: S101
            found = [*judge_owners(catalogue, name), *judge_record(request.recipe.base, allow_broken=allow_broken_base)]
            print_findings(found, stderr=True)
            findings += found
            if not dry_run:
                require_copies(request.recipe, allow_file or ())  # where steps run, layers hold the copies
            display = Display(f"Fetching {name}", verbose=verbose)
            with display.shown():
                fetched = run_fetch(request, request.recipe, context, display.listener)
        except BrokenPipeError:
            raise
        except (CtkError, OSError) as error:
            if len(names) == 1:
                raise
            errors[name] = error if isinstance(error, CtkError) else from_os_error(error)
            show_error(errors[name])
            continue
        done.append(fetched)
        findings += _findings(fetched)
        if fetched.locked is not None:
            say_lock_change(fetched.locked, name, written=not dry_run)
        if not json:
            _say(fetched, dry_run=dry_run)
    if json:
        print_json("ctk.fetch/1", fetched_recipes(done, errors, dry_run=dry_run), findings)
    else:
        _suggest(done, dry_run=dry_run)
    if errors:
        raise typer.Exit(next(iter(errors.values())).exit_status)
    if not dry_run and any(fetched.left for fetched in done):
        raise typer.Exit(1)


def _require_name(text: str, catalogue: Catalogue) -> None:
    """Raise WrongInput for what names no recipe, but a file, a directory or an image."""
    from toolkit.recipes.references import has_scheme

    path, recipes = Path(text), catalogue.paths()
    is_reference = has_scheme(text)
    if text in recipes or not (
        is_reference or "/" in text or text.endswith((".toml", ".def")) or os.path.lexists(text)
    ):
        return
    fix = "`ctk list` shows the recipes."
    if text.startswith("docker://"):
        fix = f"To keep the image for builds with --offline: {command_line(['ctk', 'build', text])}"
    elif not is_reference and path.stem in recipes:
        fix = command_line(["ctk", "fetch", path.stem])
    raise WrongInput(f"ctk fetch takes names of recipes, not {text}", fix=fix)


def _suggest(done: list[Fetched], *, dry_run: bool) -> None:
    ready = next((fetched.recipe for fetched in done if not fetched.left), None)
    if dry_run and (missing := [fetched.recipe for fetched in done if fetched.left]):
        suggest(["ctk", "fetch", *missing])
    elif ready is not None:
        suggest(["ctk", "build", ready, "--offline"])


def _findings(fetched: Fetched) -> Iterator[Finding]:
    """What an offline build lacks, or may lack."""
    name = fetched.recipe
    if fetched.left:
        text = f"a build of {name} needs from the network: {', '.join(fetched.left)}"
        yield Finding("needs-network", Severity.INFO, text)
    if fetched.runs_post:
        text = f"an offline build of {name} runs `post` without a network"
        fix = f"If it downloads something: {command_line(['ctk', 'fetch', name, '--layers'])}"
        yield Finding("post-without-network", Severity.INFO, text, fix)


def _say(fetched: Fetched, *, dry_run: bool) -> None:
    if dry_run:
        for file in fetched.files:
            if file.new:
                say(f"{file.name} is not in the store")
    state = "not complete: `ctk build --offline` would fail" if fetched.left else "ready for `ctk build --offline`"
    say(f"{fetched.recipe}: {state}", style="yellow" if fetched.left else "green")
    for line in _lines(fetched, dry_run=dry_run):
        say(f"  {line}")
    print_findings(_findings(fetched))


def _lines(fetched: Fetched, *, dry_run: bool) -> Iterator[str]:
    """What is on this host, and where it comes from."""
    from toolkit.support.files import format_size
    from toolkit.support.text import count

    if (base := fetched.base) is not None:
        size = f" ({format_size(base.size)})" if base.size else ""
        origin = "on this host" if base.origin is None else "already in the store"
        yield f"base {base.reference}{size}: {f'new, from {base.origin}' if base.new else origin}"
    if (found := fetched.locked) is not None:
        state = "current" if found.change is None else "not written" if dry_run else "written"
        yield f"lock {found.path} ({count(len(found.lock.packages), 'package')}): {state}"
    if fetched.files:
        here = [file for file in fetched.files if file.size is not None]
        new = sum(file.new for file in here)
        state = f"{len(here)} in the store" if dry_run else f"{new} new, {len(here) - new} already in the store"
        size = f" ({format_size(sum(file.size or 0 for file in here))})" if here else ""
        yield f"{count(len(fetched.files), 'package file')}: {state}{size}"
    if fetched.layered:
        yield f"layers of the steps with {', '.join(fetched.layered)}: in the store"
