"""What an update of a lock is said to change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given

from tests.pins.locks import SMALL, WHEEL, locks
from toolkit.pins.changes import compare_locks

if TYPE_CHECKING:
    from toolkit.pins.model import Lock


def test_added_removed_and_changed_packages_are_named() -> None:
    now = replace(SMALL, packages=(replace(WHEEL, version="1.1"), replace(WHEEL, name="einops", version="0.8.0")))
    change = compare_locks(SMALL, now)
    assert change.lines == ("+ einops==0.8.0", "- keras-bert==0.89.0", "~ timm 1.0.3 -> 1.1")
    assert change.as_json() == {
        "added": ["einops==0.8.0"],
        "removed": ["keras-bert==0.89.0"],
        "changed": [{"name": "timm", "from": "1.0.3", "to": "1.1"}],
    }
    assert not change.made
    assert compare_locks(None, now).made


@given(locks, locks)
def test_a_change_leads_from_one_lock_to_the_other(earlier: Lock, now: Lock) -> None:
    change = compare_locks(earlier, now)
    versions = {one.name: one.version for one in earlier.packages}
    for line in change.removed:
        versions.pop(line.partition("==")[0])
    versions.update(line.split("==") for line in change.added)  # type: ignore[misc]
    versions.update((name, new) for name, _, new in change.changed)
    assert versions == {one.name: one.version for one in now.packages}
    assert compare_locks(now, now).lines == ()
