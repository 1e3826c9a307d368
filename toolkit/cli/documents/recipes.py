"""Documents about recipes, bases and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.pins.lock.document import lock_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.builds.trying import Tried
    from toolkit.pins.lock.changes import LockChange
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Base, Recipe


def listed_recipe(recipe: Recipe, *, whose: str) -> dict[str, Any]:
    """A row of `ctk list`. `whose` is `own` or `shipped`."""
    return {
        "name": recipe.name,
        "group": recipe.group,
        "base": recipe.base.name,
        "packages": list(recipe.packages),
        "description": recipe.description,
        "from": whose,
        "path": str(recipe.path),
    }


def listed_base(base: Base) -> dict[str, Any]:
    """A row of `ctk bases`."""
    return {
        "name": base.name,
        "bootstrap": base.bootstrap,
        "reference": base.reference,
        "digest": base.digest,
        "python": base.python,
        "framework": base.framework,
        "framework_version": base.framework_version,
        "cuda": base.cuda,
        "installer": base.installer,
        "apt": list(base.apt),
        "description": base.description,
        "source": base.source,
    }


def recipe_edit(
    name: str, key: str, change: LockChange | None, *, added: Sequence[str] = (), removed: Sequence[str] = ()
) -> dict[str, Any]:
    """What `ctk add` and `ctk remove` did to the list `key` of a recipe."""
    return {
        "recipe": name,
        "list": key,
        "added": list(added),
        "removed": list(removed),
        "lock_change": lock_change(change),
    }


def lock(found: Lock, path: Path) -> dict[str, Any]:
    """A lock, and where it is."""
    return {"path": str(path), **lock_document(found)}


def lock_change(change: LockChange | None) -> dict[str, Any] | None:
    """The changes of an updated lock; None if it did not change."""
    if change is None:
        return None
    return {
        "added": list(change.added),
        "removed": list(change.removed),
        "changed": [{"name": name, "from": old, "to": new} for name, old, new in change.changed],
        "notes": list(change.notes),
    }


def trial(recipe: Recipe, tried: Tried) -> dict[str, Any]:
    """What `ctk try` imported."""
    return {
        "recipe": recipe.name,
        "base": recipe.base.name,
        "imported": [
            {
                "name": package.package,
                "version": package.version,
                "seconds": package.seconds,
                "steps": list(package.steps),
            }
            for package in tried.imported
        ],
        "skipped": list(recipe.import_skip),
        "seconds": round(tried.seconds, 1),
        "import_seconds": tried.import_seconds,
        "log": str(tried.log),
    }
