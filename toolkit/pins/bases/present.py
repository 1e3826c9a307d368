"""Whether the base that a recipe names on this machine is an image, told before anything is read or copied from it.

The runtime would copy any directory: a private one, too, that the recipe of a cloned repository names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.recipes.model import Bootstrap
from toolkit.recipes.references import require_present
from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from toolkit.inventory.formats.kinds import PathKind
    from toolkit.recipes.model import Base, Recipe


def require_base(recipe: Recipe) -> None:
    """Raise WrongInput if the base is a path of this machine from which no image can be built.

    For the base that the recipe itself names, the message has the file, line and key.
    """
    if not recipe.base.is_local:
        return
    try:
        require_present(recipe.base)
        _require_image(recipe.base)
    except WrongInput as error:
        if recipe.rebased or not recipe.path.is_file():
            raise
        from_recipe = f"Relative paths start at the directory of the recipe, {recipe.path.parent}.{_elsewhere(recipe)}"
        fix = error.fix if recipe.base.path.exists() else from_recipe
        read_toml(recipe.path).fail("base", error.message, fix=fix)


def _elsewhere(recipe: Recipe) -> str:
    """Where the base would be found if its path started at another directory; "" if nowhere."""
    parent = recipe.path.absolute().parent
    name = os.path.relpath(recipe.base.path, parent)
    found = next((place / name for place in (Path.cwd(), parent.parent) if (place / name).exists()), None)
    return f" To use {found}, write it as {os.path.relpath(found, parent)}." if found is not None else ""


def _require_image(base: Base) -> None:
    from toolkit.inventory.formats.kinds import IMAGES, PathKind, kind_of

    if base.bootstrap == Bootstrap.OCI:
        return
    kind = kind_of(base.path)
    if base.bootstrap == Bootstrap.DOCKER_ARCHIVE:
        # A tar may begin with anything.
        is_right, expected = kind in (PathKind.TAR, PathKind.GZIP, PathKind.OTHER_FILE), "a docker archive"
    else:
        # Apptainer also starts from a file with an ext file system.
        is_right, expected = kind in (*IMAGES, PathKind.EXT), "an image or a sandbox"
    if not is_right:
        words = f"{base.path} is not {expected}: it is {kind.value}"
        raise WrongInput(words, fix=_fix_for(base.path, kind), code="wrong-file")


def _fix_for(path: Path, kind: PathKind) -> str | None:
    from toolkit.inventory.formats.kinds import IMAGES, PathKind, fix_for

    if kind in IMAGES:
        return f"Name it without a scheme: {path}"
    if kind in (PathKind.TAR, PathKind.GZIP):
        return f"If docker save made it, name it as docker-archive:{path}"
    return f"Name it as oci:{path}" if (path / "oci-layout").is_file() else fix_for(path, kind)
