"""Documents about recipes, bases and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.pins.lock.document import lock_document
from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from toolkit.builds.fetching import Fetched
    from toolkit.builds.trying import Tried
    from toolkit.pins.lock.changes import LockChange
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.store import Found
    from toolkit.recipes.model import Recipe
    from toolkit.support.errors import CtkError


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


def recipe_edit(
    name: str,
    key: str,
    locked: Sequence[Found] = (),
    *,
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
    preferred: Sequence[str] = (),
) -> dict[str, Any]:
    """What `ctk add` and `ctk remove` did to the list `key` of a recipe, and to each section of its lock."""
    return {
        "recipe": name,
        "list": key,
        "added": list(added),
        "removed": list(removed),
        "preferred": list(preferred),
        "lock_changes": {found.lock.architecture: lock_change(found.change) for found in locked if found.change},
    }


def locks(found: Sequence[Lock], path: Path) -> dict[str, Any]:
    """The locks of a recipe by architecture, as in their file, and where it is."""
    sections = {lock.architecture: lock_document(lock) for lock in found}
    return {"path": str(path), "recipe": found[0].recipe, **sections}


def lock_change(change: LockChange | None) -> dict[str, Any] | None:
    """The changes of an updated lock; None if it did not change."""
    if change is None:
        return None
    return {
        "added": list(change.added),
        "removed": list(change.removed),
        "changed": [{"name": name, "from": old, "to": new} for name, old, new in change.changed],
        "notes": list(change.notes),
        "unlike_list": [
            {"name": name, "listed": listed, "version": None if version == "-" else version, "why": why}
            for name, listed, version, why in change.unlike_list
        ],
        "released": [{"name": name, "newest": newest} for name, newest in change.released],
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


def fetched_recipes(fetched: Iterable[Fetched], errors: Mapping[str, CtkError], *, dry_run: bool) -> dict[str, Any]:
    """What of some recipes is on this host, and the errors of others by their names."""
    return {
        "dry_run": dry_run,
        "recipes": [_recipe(found) for found in fetched],
        "errors": [
            {
                "recipe": name,
                "exit_status": error.exit_status,
                "code": error.code,
                "message": redact(error.message),
                "fix": redact(error.fix) if error.fix else None,
            }
            for name, error in errors.items()
        ],
    }


def _recipe(found: Fetched) -> dict[str, Any]:
    return {
        "recipe": found.recipe,
        "base": str(found.base.image) if found.base is not None else None,
        "base_reference": found.base.reference if found.base is not None else None,
        "base_new": found.base is not None and found.base.new,
        "lock": str(found.locked.path) if found.locked is not None else None,
        "files": [
            {"name": file.name, "sha256": file.sha256, "size_bytes": file.size, "new": file.new} for file in found.files
        ],
        "from_layers": list(found.layered),
        "from_network": list(found.left),
    }
