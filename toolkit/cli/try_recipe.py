"""`ctk try`: whether the packages of a recipe can be imported over its base, without building an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_base, complete_recipe
from toolkit.cli.documents import recipes as documents
from toolkit.cli.locks import say_lock_change
from toolkit.cli.output import print_findings, print_json, print_table, say, suggest
from toolkit.cli.progress import Display
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from toolkit.recipes.model import Recipe


def try_recipe(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="The recipe's name.", autocompletion=complete_recipe)],
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE", help="Base to start from instead, as for `ctk build`.", autocompletion=complete_base
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print the output of the build as it runs.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Test a recipe's imports without building an image.

    The locked packages are installed over the base in a temporary directory, with the installer and the guard of `ctk
    build`. Then the recipe's packages and the base's frameworks are imported as at the end of a build: each in its own
    process, without a GPU. Base and ./defs do not change: a missing or outdated lock is resolved for this trial only.

        ctk try mine                  the build's import check, in less time
        ctk try mine --base my.sif    on an image on this machine

    The base must be on this machine: an image, a sandbox, or a base that an earlier build pulled. Packages of `apt`
    are installed too; `post`, [[files]] and [check] are skipped.

    Exit status 1: a package cannot be imported. The message names it, the likely cause, and a version that is likely
    to work. Exit status 3: the base is not on this machine; the message says how to pull it.
    """
    from toolkit.builds.context import BuildContext
    from toolkit.builds.trying import base_here, require_packages
    from toolkit.builds.trying import try_recipe as run_trial
    from toolkit.definitions.definition import check
    from toolkit.pins.bases.before_pull import require_host_architecture
    from toolkit.pins.bases.local import require_runnable
    from toolkit.pins.bases.steady import PresentBase, state_of, unchanged
    from toolkit.pins.store import Locks
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.owners import judge_owners
    from toolkit.recipes.references import resolve_base
    from toolkit.runtime.engine import find_runtime
    from toolkit.support.site import load_site

    site = load_site()
    catalogue = Catalogue.here()
    recipe = catalogue.recipe(name, base=resolve_base(base, catalogue.bases()) if base else None)
    owners = judge_owners(catalogue, name)
    print_findings(owners, stderr=True)
    check(recipe)
    require_host_architecture(recipe)
    require_packages(recipe)
    runtime = find_runtime(site)
    area = open_work_area(site)
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True))
    image, digest = base_here(recipe, locks, area)
    require_runnable(image)
    state = state_of(recipe.base)
    display = Display(f"Trying {name}", verbose=verbose)
    with display.shown(), unchanged(state):
        display.listener.on_step("choosing the versions of the packages")
        brought = image if digest is not None else None
        found = locks.for_build(recipe, PresentBase(brought, digest, state), write=False)
        if not recipe.rebased:
            say_lock_change(found, name, written=False)
        tried = run_trial(recipe, found.lock, image, BuildContext(runtime, area, locks), display.listener)
    findings = _left_out(recipe)
    if json:
        print_json("ctk.try/1", documents.trial(recipe, tried), [*owners, *findings])
        return
    rows = [
        (imported.package, imported.version, f"{imported.seconds:.1f}", ", ".join(imported.steps))
        for imported in tried.imported
    ]
    print_table(("package", "version", "seconds", "tried"), rows)
    print_findings(findings, stderr=True)
    say(f"All packages of {name} can be imported ({tried.seconds:.0f} s). Log: {tried.log}", style="green")
    suggest(f"ctk build {name}")


def _left_out(recipe: Recipe) -> list[Finding]:
    """Parts of the recipe that a build runs and a trial skips."""
    found = []
    if recipe.import_skip:
        text = f"not imported, because of [imports] skip in the recipe: {', '.join(recipe.import_skip)}"
        found.append(Finding("import-skipped", Severity.INFO, text))
    of_build = (("post", recipe.post.strip()), ("[[files]]", recipe.files), ("[check]", recipe.check))
    parts = [part for part, given in of_build if given]
    if parts:
        text = f"{' and '.join(parts)} of the recipe were not part of the trial"
        found.append(Finding("not-tried", Severity.INFO, text))
    return found
