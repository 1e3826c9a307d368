"""Remove from this user's store what was not used for longest. A running build keeps what it uses."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.store.entries import RECORD, Kind
from toolkit.store.listing import Listed, entries_of
from toolkit.store.needs import images
from toolkit.store.publishing import writing
from toolkit.store.removing import remove_entry, sweep_removed
from toolkit.support.staging import sweep

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolkit.store.store import Store

SPARED_SECONDS = 3600.0  # since the last use
_OLDEST_NOTE = 180 * 86400.0  # seconds after which a digest of a file that is not in the store is computed again
_OLDEST_TEMPORARY = 3600.0


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be, and what stays; `wanted` is the size that was asked for, in bytes."""

    removed: tuple[Listed, ...]
    left: tuple[Listed, ...]
    wanted: int | None = None

    @property
    def freed_bytes(self) -> int:
        return sum(listed.size for listed in self.removed)

    @property
    def left_bytes(self) -> int:
        return sum(listed.size for listed in self.left)

    @property
    def is_enough(self) -> bool:
        """Whether the store is as small as was asked for: entries of the last hour may be larger than that."""
        return self.wanted is None or self.left_bytes <= self.wanted


def choose(found: Iterable[Listed], *, keep: int | None, older: float | None, now: float) -> tuple[Listed, ...]:
    """The entries to remove: what was not used for `older` seconds, then the oldest until `keep` bytes are left.

    Layers and packages go before bases: they are made from them. Entries used in the last hour are spared, and those
    that were used in the hour to come, as another host's clock may say. A later time comes from a clock that was wrong:
    it says nothing, so such an entry goes first.
    """
    found = sorted(found, key=lambda listed: (listed.kind is Kind.BASE, _known_use(listed, now), listed.key))
    can_go = [listed for listed in found if _known_use(listed, now) <= now - SPARED_SECONDS]
    chosen: list[Listed] = []
    younger: list[Listed] = []
    for listed in can_go:
        is_old = older is not None and _known_use(listed, now) <= now - older
        (chosen if is_old else younger).append(listed)
    excess = sum(listed.size for listed in found) - sum(listed.size for listed in chosen) - (keep or 0)
    for listed in younger:
        if keep is not None and excess > 0:
            chosen.append(listed)
            excess -= listed.size
    return tuple(chosen)


def _known_use(listed: Listed, now: float) -> float:
    return listed.last_use if listed.has_known_use(now) else 0.0


def prune(store: Store, *, keep: int | None = None, older: float | None = None, dry_run: bool = False) -> Pruned:
    """Remove entries of this user's store as `choose` says, and what killed processes left there.

    Raises MissingOnHost (`store-not-writable`) if the store cannot be written. A full disk or quota is no obstacle.
    """
    now = time.time()
    if not dry_run:
        _tidy(store.own, now)
    found = tuple(entries_of(store.own, frozenset(), images(store.own)))
    chosen = choose(found, keep=keep, older=older, now=now)
    gone = chosen if dry_run else tuple(listed for listed in chosen if remove_unused(store, listed))
    gone_directories = {listed.directory for listed in gone}
    return Pruned(gone, tuple(listed for listed in found if listed.directory not in gone_directories), keep)


def remove_unused(store: Store, listed: Listed) -> bool:
    """Remove an entry unless it was used since it was listed; whether it is gone by that. Raises MissingOnHost."""

    def is_unused(aside: Path) -> bool:
        # The time of what is listed as the last use; an entry that was made again meanwhile has another one.
        time_of = aside if listed.problem is not None else aside / RECORD
        with contextlib.suppress(OSError):
            return time_of.lstat().st_mtime == listed.last_use
        return False

    with writing(store.own):
        return remove_entry(listed.directory, store.digests, is_unused)


def _tidy(own: Path, now: float) -> None:
    """Remove what killed processes left, and notes on files and images that are gone."""
    sweep(own)
    sweep_removed(own)
    images(own, forget=True)
    with contextlib.suppress(OSError):
        for note in (own / "digests").iterdir():
            oldest = _OLDEST_TEMPORARY if note.name.startswith(".") else _OLDEST_NOTE
            with contextlib.suppress(OSError):
                if note.lstat().st_mtime < now - oldest:
                    note.unlink()
