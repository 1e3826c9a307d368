"""`ctk list` and `ctk bases`: what can be built here, and from what."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from toolkit.cli.output import print_json, print_table, suggest

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def list_recipes(json: _Json = False) -> None:
    """Show the recipes that can be built here.

    Your own recipes, `./defs/NAME.toml`, come first and hide shipped ones of the same name.
    """
    from toolkit.recipes.catalogue import Catalogue

    catalogue = Catalogue.here()
    bases = catalogue.bases()
    recipes = [catalogue.recipe(name, bases=bases) for name in catalogue.paths()]
    whose = {recipe.name: "own" if catalogue.is_own(recipe.path) else "shipped" for recipe in recipes}
    if json:
        rows = [
            {
                "name": recipe.name,
                "base": recipe.base.name,
                "packages": list(recipe.packages),
                "description": recipe.description,
                "from": whose[recipe.name],
                "path": str(recipe.path),
            }
            for recipe in recipes
        ]
        print_json("ctk.recipes/1", {"recipes": rows})
        return
    print_table(
        ("recipe", "base", "from", "description"),
        [(recipe.name, recipe.base.name, whose[recipe.name], recipe.description) for recipe in recipes],
    )
    suggest("ctk build keras-bert")


def list_bases(json: _Json = False) -> None:
    """Show the framework bases to start from.

    They are written down in `defs/bases.toml`; entries of your own `./defs/bases.toml` are added. What is not known
    of a base is left empty, not guessed.
    """
    from toolkit.recipes.catalogue import Catalogue

    bases = Catalogue.here().bases().values()
    if json:
        print_json("ctk.bases/1", {"bases": [asdict(base) for base in bases]})
        return
    rows = [
        (base.name, base.reference, base.python or "", base.framework_version or "", base.cuda or "", base.installer)
        for base in bases
    ]
    print_table(("base", "reference", "Python", "framework", "CUDA", "installer"), rows)
    suggest("ctk build RECIPE --base BASE")
