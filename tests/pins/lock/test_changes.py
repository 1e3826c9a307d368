"""What an update of a lock is said to change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.pins.locks import SMALL, WHEEL, names, versions
from toolkit.pins.lock.changes import compare_locks, list_rows
from toolkit.pins.lock.model import EARLIER, Displaced, Held

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock


def test_added_removed_and_changed_packages_are_named() -> None:
    packages = (replace(WHEEL, version="1.1"), replace(WHEEL, name="einops", version="0.8.0"))
    now = replace(SMALL, packages=packages, notes=("an old note", "a new note"))
    change = compare_locks(replace(SMALL, notes=("an old note",)), now)
    assert change.lines == ("+ einops==0.8.0", "- keras-bert==0.89.0", "~ timm 1.0.3 -> 1.1")
    assert change.notes == ("a new note",)
    assert not change.made
    assert compare_locks(None, now).made
    assert change.same_request
    assert not compare_locks(replace(SMALL, input="sha256:other"), now).same_request


def test_version_of_list_that_is_not_locked_is_told_once() -> None:
    displaced = (Displaced("timm", ("0.9",), "it has no wheel"), Displaced("six", ("1",), "nothing requires it"))
    now = replace(SMALL, preferred=("timm==0.9", "six==1"), displaced=displaced)
    rows = (("timm", "0.9", "1.0.3", "it has no wheel"), ("six", "1", "-", "nothing requires it"))
    assert tuple(list_rows(now)) == rows
    assert compare_locks(SMALL, now).unlike_list == rows
    assert compare_locks(now, now).unlike_list == ()
    gone = replace(now, packages=SMALL.packages[:1])
    assert compare_locks(SMALL, gone).unlike_list == rows[1:], "that timm is gone is told as such"
    older = replace(SMALL, displaced=(Displaced("timm", ("1.0.3",), "x 1 requires timm<1"),))
    older = replace(older, packages=(replace(WHEEL, version="0.9"),))
    assert compare_locks(SMALL, older).lines[-1] == "~ timm 1.0.3 -> 0.9 (x 1 requires timm<1)"


def test_package_that_others_hold_back_no_more_is_named() -> None:
    now = replace(SMALL, held=(Held("timm", "1.0.3", "1.1", EARLIER),))
    assert compare_locks(SMALL, now).released == (("timm", "1.1"),)
    assert compare_locks(now, now).released == ()
    assert compare_locks(None, now).released == ()
    assert compare_locks(replace(now, held=()), now).released == (), "a newer release has appeared"
    assert compare_locks(replace(SMALL, packages=(replace(WHEEL, version="0.9"),)), now).released == ()


@given(st.dictionaries(names, versions, max_size=4), st.dictionaries(names, versions, max_size=4))
def test_a_change_leads_from_one_lock_to_the_other(before: dict[str, str], after: dict[str, str]) -> None:
    change = compare_locks(with_packages(before), with_packages(after))
    found = dict(before)
    for line in change.removed:
        del found[line.partition("==")[0]]
    found.update(tuple(line.split("==")) for line in change.added)
    found.update((name, new) for name, _, new in change.changed)
    assert found == after
    assert compare_locks(with_packages(after), with_packages(after)).lines == ()


def with_packages(versions: dict[str, str]) -> Lock:
    return replace(
        SMALL, packages=tuple(replace(WHEEL, name=name, version=version) for name, version in versions.items())
    )
