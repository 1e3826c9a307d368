"""Hard links of the base that were too large to copy before the script ran: what became of them cannot be known.

An overlay copies one name and leaves the others as they were, with the old content and number of links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.builds.layers.normalise import CannotNormalise
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolkit.builds.layers.below import Key, Lower
    from toolkit.builds.layers.normalise import Changes


def check_links(lower: Lower, changes: Changes, copied: Collection[str]) -> None:
    """Raise CannotNormalise if a name of a file below was changed or removed, and another one stays as it was."""
    doubtful = {
        key for key, paths in changes.touched.items() if not paths <= set(copied) and len(paths) < lower.links(key)
    }
    for key, names in _names(lower, doubtful).items():
        if left := names - changes.touched[key]:
            raise CannotNormalise(
                f"/{min(changes.touched[key])} of the base, which is the same file as /{min(left)}, was changed or "
                "removed, and the base has too many such hard links to copy them"
            )


def _names(lower: Lower, keys: set[Key]) -> dict[Key, set[str]]:
    """All names that are seen of these files. Lists every directory below, so only if there are any."""
    found: dict[Key, set[str]] = {}
    if keys:
        for path, entry in lower.files(lower.root, ""):
            if entry.kind is EntryKind.FILE and entry.key in keys:
                found.setdefault(entry.key, set()).add(path)
    return found
