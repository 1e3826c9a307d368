"""In which packages two locks differ: what `ctk add` and `ctk build` print after they updated a lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.pins.lock.model import EARLIER, PREFERRED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.pins.lock.model import Lock

Row = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class LockChange:
    """What a new lock installs that the earlier one did not. `made` says that there was no earlier one.

    `added` and `removed` are `name==version`; `changed` holds the name, the earlier version and the new one; `notes`
    are those of the new lock that the earlier one did not have. `unlike_list` holds what `list_rows` tells of the new
    lock and not of the earlier one, `reasons` (name, sentence) why versions changed. `released` (name, newest version)
    is what no other package holds back any more. `same_request`: recipe and base are those of the earlier lock, which
    was made without the image of the base.
    """

    made: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()
    unlike_list: tuple[Row, ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()
    released: tuple[tuple[str, str], ...] = ()
    same_request: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """One line per package, as `uv` prints them."""
        why = {name: f" ({because})" for name, because in self.reasons}
        return (
            *(f"+ {line}" for line in self.added),
            *(f"- {line}" for line in self.removed),
            *(f"~ {name} {old} -> {new}{why.get(name, '')}" for name, old, new in self.changed),
        )


def compare_locks(earlier: Lock | None, now: Lock) -> LockChange:
    """The difference in what is installed; of a first lock all is added."""
    before = earlier.versions if earlier else {}
    after = now.versions
    known = {*list_rows(earlier)} if earlier else set()
    gone = before.keys() - after.keys()
    held = {found.name: found.because for found in earlier.held} if earlier else {}
    return LockChange(
        made=earlier is None,
        added=tuple(f"{name}=={after[name]}" for name in sorted(after.keys() - before.keys())),
        removed=tuple(f"{name}=={before[name]}" for name in sorted(gone)),
        changed=tuple(
            (name, before[name], after[name])
            for name in sorted(before.keys() & after.keys())
            if before[name] != after[name]
        ),
        notes=tuple(note for note in now.notes if earlier is None or note not in earlier.notes),
        unlike_list=tuple(row for row in list_rows(now) if row not in known and row[0] not in gone),
        reasons=tuple(
            (found.name, found.because)
            for found in now.displaced
            if before.get(found.name) == found.versions[0] and f"{found.name}=={found.versions[0]}" not in now.preferred
        ),
        released=tuple(
            (found.name, found.newest)
            for found in now.held
            if found.because == EARLIER
            and before.get(found.name) == found.version
            and held.get(found.name, EARLIER) not in (EARLIER, PREFERRED)
        ),
        same_request=earlier is not None and earlier.input == now.input,
    )


def list_rows(lock: Lock) -> Iterator[Row]:
    """(package, version of the list, version in the image, why) where the image has no version of the recipe's list.

    The version is "-" for what is not in the image.
    """
    there = {**dict(line.partition("==")[::2] for line in lock.present), **lock.versions}
    for found in lock.displaced:
        listed = next((version for version in found.versions if f"{found.name}=={version}" in lock.preferred), None)
        if listed is not None:
            yield found.name, listed, there.get(found.name, "-"), found.because
