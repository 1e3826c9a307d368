"""`ctk list`: what can be built here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.documents import recipes as documents
from toolkit.cli.output import print_findings, print_json, print_table, suggest
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Base, Recipe

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def list_recipes(json: _Json = False) -> None:
    """Show the recipes that can be built here, by group.

    Your own recipes, `./defs/NAME.toml`, come first and hide shipped recipes of the same name. A recipe that cannot be
    read is listed last, with its error; the exit status is then 2. `ctk new mine --like NAME` copies one.
    """
    from toolkit.recipes.catalogue import Catalogue

    catalogue = Catalogue.here()
    bases = catalogue.bases()
    paths = catalogue.paths()  # once: a file may come or go meanwhile
    recipes, broken = _read_all(catalogue, paths, bases)
    whose = {name: "own" if catalogue.is_own(path) else "shipped" for name, path in paths.items()}
    findings = [
        Finding("broken-recipe", Severity.ERROR, f"{name}: {error.message}", error.fix) for name, error in broken
    ]
    if json:
        rows = [documents.listed_recipe(recipe, whose=whose[recipe.name]) for recipe in recipes]
        print_json("ctk.recipes/1", {"recipes": rows}, findings)
    else:
        print_table(
            ("group", "recipe", "base", "from", "description"),
            [
                (recipe.group, recipe.name, recipe.base.name, whose[recipe.name], recipe.description)
                for recipe in sorted(recipes, key=lambda recipe: (whose[recipe.name], recipe.group, recipe.name))
            ],
        )
        print_findings(findings, stderr=True)
    if broken:
        raise typer.Exit(2)
    if not json:
        suggest("ctk build keras-bert")


def _read_all(
    catalogue: Catalogue, names: Iterable[str], bases: dict[str, Base]
) -> tuple[list[Recipe], list[tuple[str, WrongInput]]]:
    """The recipes, and the names and errors of those that cannot be read."""
    recipes, broken = [], []
    for name in names:
        try:
            recipes.append(catalogue.recipe(name, bases=bases))
        except WrongInput as error:
            broken.append((name, error))
    return recipes, broken
