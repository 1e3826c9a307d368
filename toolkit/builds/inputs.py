"""Fingerprints of an image's inputs: a build is skipped if they match those of the existing image.

The definition's text decides most: in it are the recipe, the lock, the guard, the reference and digest of the base, the
Debian mirror and ctk's version. What it only names, files and a base on this machine, is fingerprinted by its content.
What `post`, `apt` or debootstrap fetch from the network is not known beforehand: `--force` fetches it again.
The user's variables that reach the scripts (APPTAINERENV_*) count as well, if there are any.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.builds.variables import variables_digest
from toolkit.pins.bases.facts import content_digest
from toolkit.recipes.model import Bootstrap
from toolkit.recipes.outside import file_roots

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.context import BuildContext
    from toolkit.builds.request import BuildRequest
    from toolkit.definitions.definition import Definition
    from toolkit.recipes.model import Base, Recipe


def inputs_of(request: BuildRequest, definition: Definition, start: Base, context: BuildContext) -> dict[str, str]:
    """The inputs of a recipe's image by name; nothing where not all of them are known.

    `start` is the base as the definition names it. A tag of a registry whose digest is not known may have moved.
    """
    recipe, locks = request.recipe, context.locks
    if recipe is None or request.sandbox or (start.bootstrap == Bootstrap.DOCKER and start.digest is None):
        return {}
    variables = variables_digest(recipe.indexes)
    return {
        **({"variables": variables} if variables else {}),
        "definition": _hash(definition.text),
        "base": locks.local_digest(recipe) or recipe.base.bootstrap,
        "files": _hash("".join(_files(recipe, locks.cache))),
        "require": recipe.verdict or "",
        "runtime": context.runtime.version_text,
        "compression": request.options.compression,
    }


def _files(recipe: Recipe, cache: Path) -> list[str]:
    """A line for each file and directory that is copied: where it is, its mode, and its content with that of links."""
    roots = [root for copy in recipe.files for root in file_roots(copy.source)]
    return [f"{root}\0{root.stat().st_mode:o}\0{_content(root, cache)}\n" for root in roots]


def copied_digest(source: Path, cache: Path) -> str:
    """The `sha256:…` of what a build copies from `source`: modes, and contents with those of links, no path before it.

    Digests of large files are remembered in `cache`. Raises as `content_digest` does.
    """
    lines = (f"{root.stat().st_mode:o}\0{_content(root, cache)}\n" for root in file_roots(source))
    return _hash("".join(lines))


def _content(path: Path, cache: Path) -> str:
    # To read a pipe or a device would take forever.
    return content_digest(path, cache) if path.is_file() or path.is_dir() else ""


def _hash(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()}"
