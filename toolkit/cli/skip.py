"""`ctk build --allow-import-failure`: packages that a build does not import, remembered in the recipe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.cli.output import say
from toolkit.support.errors import WrongInput
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.builds.request import BuildRequest
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Recipe


def with_skipped(request: BuildRequest, names: Sequence[str]) -> BuildRequest:
    """The request with these packages, by their own names or those of their imports, left out of the import step.

    Raises WrongInput if the target is no recipe, or a name is neither a package of it nor a framework.
    """
    recipe = request.recipe
    if recipe is None:
        text = f"--allow-import-failure applies only to recipes; {request.target.text} is not one"
        raise WrongInput(text, code="wrong-usage")
    skip = {*recipe.import_skip, *(_package(recipe, name) for name in names)}
    return replace(request, recipe=replace(recipe, import_skip=tuple(sorted(skip))))


def remember_skipped(catalogue: Catalogue, recipe: Recipe) -> bool:
    """Write `import_skip` of the recipe into its file, a shipped one in ./defs; whether anything was written."""
    from toolkit.pins.authoring.edit import skipping, write_edit

    edit = skipping(catalogue.path_of(recipe.name), recipe.import_skip)
    if edit.changed:
        path = catalogue.own_copy(recipe.name)
        write_edit(edit, path)
        say(f"Saved in {path}: [imports] skip = {', '.join(edit.entries)}", stderr=True)
    return bool(edit.changed)


def _package(recipe: Recipe, given: str) -> str:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    from toolkit.inventory.knowledge.frameworks import knowledge
    from toolkit.inventory.knowledge.names import names

    own = [canonicalize_name(Requirement(line).name) for line in recipe.packages]
    found = names().given_by(given, own) or canonicalize_name(given)
    if found not in own and knowledge().framework_of(found) is None:
        raise WrongInput(
            f"{recipe.name} does not list {given}, which is not a framework either.{did_you_mean(found, own)}",
            fix="A build imports the packages that the recipe lists, and the frameworks of its base.",
            code="not-imported",
        )
    return found
