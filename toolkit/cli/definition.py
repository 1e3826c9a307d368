"""`ctk def`: print a definition."""

from __future__ import annotations

from typing import Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_base, complete_recipe
from toolkit.cli.locks import AllowBrokenBase, BaseReader, lock_policy, say_lock_change
from toolkit.cli.output import live_steps, print_findings, print_json, print_text, say


def definition(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help="The recipe's name.", autocompletion=complete_recipe)],
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Base to start from instead: a name that `ctk bases` lists, FILE.sif, a sandbox, docker://REF, "
            "docker-archive:FILE or oci:DIR.",
            autocompletion=complete_base,
        ),
    ] = None,
    arch: Annotated[
        list[str] | None,
        typer.Option(
            "--arch",
            metavar="ARCH",
            help="For this one architecture, x86_64 or aarch64. [default: the recipe's, or this host's]",
        ),
    ] = None,
    locked: Annotated[
        bool, typer.Option("--locked", help="Refuse a missing or outdated lock (exit status 1).")
    ] = False,
    allow_broken_base: AllowBrokenBase = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Print the definition of a recipe.

    The text is self-contained and reproducible: keep it with a paper, send it to a colleague, or build it without ctk.
    Nothing in ./defs is written: if the lock is missing or outdated, it is resolved for this text only.

        ctk def keras-bert > k.def && apptainer build --fakeroot k.sif k.def
        ctk def cupy --arch aarch64 > k.def    build it on an Arm host
    """
    from toolkit.builds.layers.merge import refuse_layered
    from toolkit.definitions.definition import check, define
    from toolkit.definitions.labels import has_labels_of_ctk
    from toolkit.gpu.targets import check_target, judge_target
    from toolkit.pins.bases.steady import NOT_HERE
    from toolkit.pins.store import Locks, Policy
    from toolkit.recipes.architectures import for_architecture, only_architecture
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.evidence import judge_record
    from toolkit.recipes.outside import copied_files, judge_base, judge_copies
    from toolkit.recipes.owners import judge_owners
    from toolkit.recipes.references import resolve_base
    from toolkit.support.mirror import debian_mirror
    from toolkit.support.site import load_site

    catalogue = Catalogue.here()
    recipe = catalogue.recipe(name, base=resolve_base(base, catalogue.bases()) if base else None)
    owners = judge_owners(catalogue, name)
    print_findings(owners, stderr=True)
    check_target(recipe)
    if (only := only_architecture(arch)) is not None:
        recipe = for_architecture(recipe, only)
    check(recipe)
    refuse_layered(recipe.base, f"the definition of {name}")
    print_findings(judge_record(recipe.base, allow_broken=allow_broken_base), stderr=True)
    outside = judge_base(recipe) if base is None else ()
    print_findings((*judge_copies(copied_files(recipe)), *outside), stderr=True)
    site = load_site()
    policy = lock_policy(locked=locked, base=base, otherwise=Policy.PREVIEW)
    area = open_work_area(site)
    locks = Locks.of(catalogue, area.path, lambda text: say(f"Warning: {text}", stderr=True), policy)
    print_findings(judge_target(recipe, locks.bases.values()), stderr=True)
    locks.require(recipe)
    with live_steps(f"Choosing the versions for {name}") as on_step:
        reader = BaseReader(locks, area, site, on_step)
        found = locks.find(recipe, reader.read(recipe) if recipe.needs_guard else NOT_HERE)
    if found is not None and not recipe.rebased:
        say_lock_change(found, name, written=False)
    made = define(
        recipe if found else locks.pinned(recipe),
        lock=found.lock if found else None,
        mirror=debian_mirror(site),
        relabel=has_labels_of_ctk(recipe.base),
    )
    if json:
        print_json("ctk.definition/1", {"recipe": made.name, "definition": made.text}, owners)
    else:
        print_text(made.text)
