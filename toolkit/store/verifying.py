"""Read every entry again, whatever is remembered of it, and name those that are damaged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from toolkit.store.checking import check_entry
from toolkit.store.digests import Digests
from toolkit.store.listing import Listed, entries
from toolkit.store.publishing import writing
from toolkit.store.removing import identity, remove_entry
from toolkit.store.trusted import Untrusted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolkit.store.store import Store


@dataclass(frozen=True, slots=True)
class Verified:
    """What was read: how many entries are whole, and those that are not, each with its problem; which were removed.

    `foreign` are entries that were not read, because a user who is not trusted could have written them.
    """

    whole: int
    whole_bytes: int
    damaged: tuple[Listed, ...]
    foreign: tuple[Listed, ...] = ()
    removed: tuple[Listed, ...] = ()


def verify(store: Store, *, remove: bool = False, on_entry: Callable[[Listed], None] = lambda _: None) -> Verified:
    """Compare each content with its hash. With `remove`, other entries of this user's store are removed.

    `on_entry` is told each entry before it is read. Raises MissingOnHost if one cannot be removed.
    """
    whole: list[Listed] = []
    others: list[Listed] = []
    removed: list[Listed] = []
    for listed in entries(store):
        on_entry(listed)
        before = identity(listed.directory)
        found = _read(store, listed)
        if before is None or identity(listed.directory) != before:
            continue  # it was pruned, or made again, meanwhile
        if found.problem is None:
            whole.append(listed)
            continue
        others.append(found)
        if remove and listed.root == store.own:
            with writing(store.own):
                if remove_entry(listed.directory, store.digests, partial(_is, before)):
                    removed.append(found)
    damaged = tuple(listed for listed in others if not listed.is_foreign)
    foreign = tuple(listed for listed in others if listed.is_foreign)
    return Verified(len(whole), sum(listed.size for listed in whole), damaged, foreign, tuple(removed))


def _read(store: Store, listed: Listed) -> Listed:
    """The entry with its problem, if it has one."""
    owners = store.trusted_uids if listed.root != store.own else frozenset()
    try:
        check_entry(listed.root, listed.kind, listed.key, Digests(None), owners)
    except FileNotFoundError:
        return replace(listed, problem="a file of it is missing", is_foreign=False)
    except OSError as error:
        return replace(listed, problem=error.strerror or str(error), is_foreign=isinstance(error, Untrusted))
    return replace(listed, problem=None)


def _is(before: tuple[int, int], aside: Path) -> bool:
    return identity(aside) == before
