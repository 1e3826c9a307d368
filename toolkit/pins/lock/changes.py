"""In which packages two locks differ: what `ctk add` and `ctk build` print after they updated a lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock


@dataclass(frozen=True, slots=True)
class LockChange:
    """What a new lock installs that the earlier one did not. `made` says that there was no earlier one.

    `added` and `removed` are `name==version`; `changed` holds the name, the earlier version and the new one; `notes`
    are those of the new lock that the earlier one did not have.
    """

    made: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """One line per package, as `uv` prints them."""
        return (
            *(f"+ {line}" for line in self.added),
            *(f"- {line}" for line in self.removed),
            *(f"~ {name} {old} -> {new}" for name, old, new in self.changed),
        )


def compare_locks(earlier: Lock | None, now: Lock) -> LockChange:
    """The difference in what is installed; of a first lock all is added."""
    before = {package.name: package.version for package in earlier.packages} if earlier else {}
    after = {package.name: package.version for package in now.packages}
    return LockChange(
        made=earlier is None,
        added=tuple(f"{name}=={after[name]}" for name in sorted(after.keys() - before.keys())),
        removed=tuple(f"{name}=={before[name]}" for name in sorted(before.keys() - after.keys())),
        changed=tuple(
            (name, before[name], after[name])
            for name in sorted(before.keys() & after.keys())
            if before[name] != after[name]
        ),
        notes=tuple(note for note in now.notes if earlier is None or note not in earlier.notes),
    )
