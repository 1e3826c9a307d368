"""Documents about what was fetched for builds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.builds.fetching import Fetched


def fetched_recipes(fetched: Iterable[Fetched], *, dry_run: bool) -> dict[str, Any]:
    """What of some recipes is on this host."""
    return {"dry_run": dry_run, "recipes": [_recipe(found) for found in fetched]}


def _recipe(found: Fetched) -> dict[str, Any]:
    return {
        "recipe": found.recipe,
        "base": str(found.base) if found.base is not None else None,
        "files": [
            {"name": file.name, "sha256": file.sha256, "size_bytes": file.size, "new": file.new} for file in found.files
        ],
        "from_network": list(found.left),
    }
