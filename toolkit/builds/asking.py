"""Turn the arguments of a command line into a request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.output import check_output
from toolkit.builds.request import BuildRequest
from toolkit.builds.target import BuildTarget, TargetKind
from toolkit.definitions.definition import check
from toolkit.pins.bases.before_pull import require_host_architecture
from toolkit.pins.bases.steady import state_of
from toolkit.recipes.model import Base, Bootstrap
from toolkit.recipes.references import base_from_reference, resolve_base
from toolkit.support.content import state_of_copied
from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Recipe
    from toolkit.runtime.engine import BuildOptions


def request_build(
    target: BuildTarget,
    catalogue: Catalogue,
    options: BuildOptions,
    *,
    output: Path | None = None,
    base: str | None = None,
    force: bool = False,
) -> BuildRequest:
    """The request to build `target`, a recipe on `base` if that is given.

    Raises WrongInput if the target is wrong, a recipe cannot become an image, or the output is something of the
    user's.
    """
    if base is not None and target.kind is not TargetKind.RECIPE:
        raise WrongInput(f"--base applies only to recipes; {target.text} is not one")
    if options.layered and (options.sandbox or target.kind is not TargetKind.RECIPE):
        what = "a sandbox" if options.sandbox else target.text
        raise WrongInput(f"--layered applies only to images of recipes, and not to {what}", fix="Omit --layered.")
    recipe: Recipe | None = None
    start: Base | None = None
    if target.kind is TargetKind.RECIPE:
        recipe = catalogue.recipe(target.text, base=resolve_base(base, catalogue.bases()) if base else None)
        check(recipe)
        require_host_architecture(recipe)
        start = recipe.base
    elif target.kind is TargetKind.REFERENCE:
        start = base_from_reference(target.text)
    elif target.kind is TargetKind.IMAGE:
        start = Base(target.text, Bootstrap.LOCALIMAGE, str(Path(target.text).absolute()))
        if options.sandbox:
            raise WrongInput("--sandbox does not apply to an image that is merged", fix="Omit --sandbox, or --flat.")
    final, link = _final(output or Path(target.name + ("" if options.sandbox else ".sif")))
    files = state_of_copied(copy.source for copy in recipe.files) if recipe else ""
    request = BuildRequest(target, recipe, start, state_of(start), final, link, options, force, files)
    check_output(request)
    return request


def _final(output: Path) -> tuple[Path, Path | None]:
    """The output path of the image: the target of a symlink of that name, since users keep images on scratch that way.

    With it the link, or None.
    """
    final = Path(one_line(str(output), "the output")).absolute()
    return (Path(os.path.realpath(final)), final) if final.is_symlink() else (final, None)
