"""Shared stores that are not used, and why: a class that does not know it fills a quota each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolkit.store.entries import Kind
from toolkit.store.trusted import Untrusted, open_directory
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.store.store import Store

_OWNERS = "The site names owners it trusts as `store_owners`; nobody else may be able to write there (chmod go-w)."
_NAME = "Name the directory that `ctk cache path` prints."
_MOUNT = "Check CTK_STORE and `stores` of the site settings, and whether the file system is mounted on this host."


def judge_shared(store: Store) -> tuple[Finding, ...]:
    """A warning (`store-not-used`) for each shared store that is missing, is no store, or is not trusted."""
    found = ((root, _problem(root, store.trusted_uids)) for root in store.shared)
    return tuple(
        Finding("store-not-used", Severity.WARNING, f"the shared store {root} is not used: {problem[0]}", problem[1])
        for root, problem in found
        if problem is not None
    )


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
