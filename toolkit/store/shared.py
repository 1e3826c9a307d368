"""Shared stores that are not used, and why: a class that does not know it fills a quota each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolkit.store.entries import Kind
from toolkit.store.trusted import Untrusted, open_directory
from toolkit.support.findings import Finding, Severity
from toolkit.support.paths import OVERLAY_SEPARATORS

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.store.store import Store

_OWNERS = "The site names owners it trusts as `store_owners`; nobody else may be able to write there (chmod go-w)."
_MOVE = "Ask the owner of the store to move it to a path without colons and commas. Its other entries are used."
_NAME = "Name the directory that `ctk cache path` prints."
_MOUNT = "Check CTK_STORE and `stores` of the site settings, and whether the file system is mounted on this host."


def judge_shared(store: Store) -> tuple[Finding, ...]:
    """A warning (`store-not-used`) for each shared store that is missing, is no store, or is not trusted.

    Also for one whose layers cannot be used because of its path.
    """
    found = (_judge(root, store.trusted_uids) for root in store.shared)
    return tuple(Finding("store-not-used", Severity.WARNING, *said) for said in found if said is not None)


def _judge(root: Path, owners: frozenset[int]) -> tuple[str, str] | None:
    """The warning, and the fix."""
    if (problem := _problem(root, owners)) is not None:
        return f"the shared store {root} is not used: {problem[0]}", problem[1]
    for character, name in OVERLAY_SEPARATORS.items():
        if character in str(root):
            return f"layers of the shared store {root} are not used, because its path has a {name}", _MOVE
    return None


def _problem(root: Path, owners: frozenset[int]) -> tuple[str, str] | None:
    """What is wrong, and the fix."""
    try:
        os.close(open_directory(root, (), owners))
        names = {path.name for path in root.iterdir()}
    except Untrusted as error:
        return str(error), _OWNERS
    except OSError as error:
        return error.strerror or str(error), _MOUNT
    if "store" in names:  # it may have an old `bases`, too
        return "it is a work area, not a store: the store is its directory `store`", _NAME
    if names.isdisjoint(Kind):
        return f"it has none of the directories {', '.join(Kind)}", _NAME
    return None
