"""Fingerprints of an image's inputs: a build is skipped if they match those of the existing image.

The definition's text decides most: in it are the recipe, the lock, the guard, the reference and digest of the base, the
Debian mirror and ctk's version. What it only names, files and a base on this machine, is fingerprinted by its content.
What `post`, `apt` or debootstrap fetch from the network is not known beforehand: `--force` fetches it again.
The user's variables that reach the scripts (APPTAINERENV_*) count as well, if there are any. A `post` that ran without
a network may have made less than with one.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.builds.variables import variables_digest
from toolkit.recipes.model import Bootstrap, Target
from toolkit.support.content import content_digest

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.context import BuildContext
    from toolkit.builds.request import BuildRequest
    from toolkit.definitions.definition import Definition
    from toolkit.recipes.model import Base


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
        "files": _hash(
            "\n".join(copied_digest(copy.source, locks.cache, fresh=request.force) for copy in recipe.files)
        ),
        "require": recipe.verdict or "",
        "runtime": context.runtime.version_text,
        "compression": request.options.compression,
        **({"target": _hash(repr(target))} if (target := replace(recipe.target, origin="")) != Target() else {}),
        **({"network": "none"} if context.offline and recipe.post.strip() else {}),
    }


def copied_digest(source: Path, cache: Path, *, fresh: bool = False) -> str:
    """The `sha256:…` of what a build copies from `source`: names, modes and contents, with those that links lead to.

    Digests are remembered in `cache`, and not used with `fresh`. Raises as `content_digest` does.
    """
    return content_digest(source, cache, follow=True, fresh=fresh)


def _hash(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()}"
