"""Documents about the store."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.store.listing import Listed
    from toolkit.store.pruning import Pruned
    from toolkit.store.store import Store
    from toolkit.store.verifying import Verified

_LATEST = 253402300799.0  # the year 9999, the last that has four digits


def cache(store: Store, found: Sequence[Listed], keep: int | None) -> dict[str, Any]:
    """What the stores hold."""
    return {
        "own": str(store.own),
        "shared": list(map(str, store.shared)),
        "size_bytes": sum(listed.size for listed in found if listed.root == store.own),
        "keep_bytes": keep,
        "entries": _rows(found),
    }


def pruned(store: Store, result: Pruned, *, dry_run: bool) -> dict[str, Any]:
    """What was removed, or would be."""
    return {
        "own": str(store.own),
        "dry_run": dry_run,
        "freed_bytes": result.freed_bytes,
        "left_bytes": result.left_bytes,
        "removed": _rows(result.removed),
    }


def verified(store: Store, result: Verified) -> dict[str, Any]:
    """What was read again, and what of it is damaged."""
    return {
        "own": str(store.own),
        "shared": list(map(str, store.shared)),
        "undamaged": result.whole,
        "undamaged_bytes": result.whole_bytes,
        "damaged": _rows(result.damaged),
        "untrusted": _rows(result.foreign),
        "removed": len(result.removed),
    }


def _rows(found: Sequence[Listed]) -> list[dict[str, Any]]:
    return [
        {
            "store": str(listed.root),
            "kind": listed.kind.value,
            "key": listed.key,
            "size_bytes": listed.size,
            "last_use": _time(listed.last_use),
            "about": {redact(name): redact(text) for name, text in listed.about.items()},
            "problem": listed.problem,
            "needed_by": [{"image": str(image.image), "recipe": image.recipe} for image in listed.needed_by],
        }
        for listed in found
    ]


def _time(seconds: float) -> str:
    """A time as in ISO 8601; a file may have any."""
    moment = datetime.datetime.fromtimestamp(min(max(seconds, 0.0), _LATEST), datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
