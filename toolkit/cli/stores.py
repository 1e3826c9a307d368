"""What a user is told about shared stores that are not used, once in each command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.cli.output import print_findings, say

if TYPE_CHECKING:
    from toolkit.store.store import Store
    from toolkit.support.findings import Finding

_told: set[str] = set()


def tell_unused(store: Store) -> list[Finding]:
    """Warn on stderr about each shared store that is not used, and return the warnings for the JSON document."""
    from toolkit.store.shared import judge_shared

    found = list(judge_shared(store))
    print_findings([finding for finding in found if _is_new(finding.message)], stderr=True)
    return found


def tell_once(note: str) -> None:
    """Say on stderr why something of a store is not used."""
    if _is_new(note):
        say(f"Warning: {note}", stderr=True)


def _is_new(text: str) -> bool:
    if text in _told:
        return False
    _told.add(text)
    return True
