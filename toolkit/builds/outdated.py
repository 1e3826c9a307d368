"""Whether an image is older than its recipe and lock: both leave fingerprints of their parts in its record."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.builds.record import read_record
from toolkit.pins.bases.local import image_architecture
from toolkit.pins.lock.document import index_document, lock_document
from toolkit.pins.lock.lockfile import load_lock
from toolkit.recipes.architectures import host_architecture
from toolkit.support.errors import CtkError
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Recipe

IMAGE_OUTDATED = "image-outdated"
_LENGTH = 16  # of a fingerprint, in hexadecimal digits: it tells versions of one file apart


def made_from(recipe: Recipe, lock: Lock | None, *, other_base: bool) -> dict[str, str]:
    """Fingerprints of all in a recipe that is in its image, and of the lock.

    An image on another base than the recipe's own (`--base`) has a lock of its own, which no one keeps in `./defs`.
    """
    parts: dict[str, Any] = {
        "apt": sorted(recipe.apt),
        "packages": sorted(recipe.packages),
        "index": [index_document(index) for index in recipe.indexes],
        "post": recipe.post,
        # Relative: a project that was moved is the same.
        "files": [(os.path.relpath(copy.source, recipe.path.parent), copy.target) for copy in recipe.files],
        "environment": recipe.environment,
    }
    if not other_base:
        reference = recipe.base.reference
        parts["base"] = (Path(reference).name if recipe.base.is_local else reference, recipe.base.digest)
        if lock is not None:
            parts["lock"] = (lock.base.digest, lock_document(lock)["packages"])
    return {name: _fingerprint(part) for name, part in parts.items()}


def _fingerprint(part: object) -> str:
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode(errors="surrogateescape")).hexdigest()[:_LENGTH]


def outdated(image: Path, recipe: Recipe, locks: Path) -> Finding | None:
    """A note if `recipe` or its lock changed since `image` was built; None if unknown.

    `locks` is the directory that holds the lock.
    """
    record = read_record(image)
    if record is None or record.target != f"recipe:{recipe.name}":
        return None
    now = made_from(recipe, _lock_in(locks, recipe, image), other_base="base" not in record.made_from)
    changed = [name for name, before in record.made_from.items() if now.get(name, before) != before]
    if not changed:
        return None
    what = f"the lock of {recipe.name}" if changed == ["lock"] else f"{recipe.path}: {', '.join(changed)}"
    build = ["ctk", "build", recipe.name]
    return Finding(
        IMAGE_OUTDATED,
        Severity.WARNING,
        f"{image.name} is out of date. Changed since the build: {what}",
        f"{command_line(build)} rebuilds it.",
    )


def _lock_in(directory: Path, recipe: Recipe, image: Path) -> Lock | None:
    """The lock for the architecture of `image`, which may have been copied from another host."""
    try:
        return load_lock(directory / f"{recipe.name}.lock.toml", image_architecture(image) or host_architecture())
    except CtkError:  # the build says so
        return None
