"""The oldest goes first; what a running build uses stays."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.store.making import DAY, HOUR, leftovers, names, put
from toolkit.store import pruning
from toolkit.store.listing import Listed
from toolkit.store.needs import images, note_image
from toolkit.store.pruning import choose, prune, remove_unused
from toolkit.store.store import Kind, Store
from toolkit.support.errors import MissingOnHost

NOW = 1e9


def listed(name: int, kind: Kind = Kind.LAYER, size: int = 10, age: float = DAY) -> Listed:
    return Listed(Path("/store"), kind, f"{name:064x}", size, NOW - age)


LISTED = st.builds(
    listed,
    st.integers(0, 1000),
    st.sampled_from(Kind),
    st.integers(0, 100),
    st.floats(-HOUR, 100 * DAY) | st.just(HOUR),
)


@given(
    st.lists(LISTED, max_size=20, unique_by=lambda entry: (entry.kind, entry.key)),
    st.none() | st.integers(0, 500),
    st.none() | st.floats(0, 100 * DAY),
)
@examples(300)
def test_what_is_chosen(found: list[Listed], keep: int | None, older: float | None) -> None:
    chosen = choose(found, keep=keep, older=older, now=NOW)
    left = [entry for entry in found if entry not in chosen]
    assert all(entry.last_use <= NOW - HOUR for entry in chosen), "running builds keep what they use"
    can_go = [entry for entry in left if entry.last_use <= NOW - HOUR]
    if keep is not None:
        assert sum(entry.size for entry in left) <= keep or not can_go
    if older is not None:
        assert not [entry for entry in can_go if entry.last_use <= NOW - older]
    if keep is None and older is None:
        assert chosen == ()
    if older is None and chosen:
        assert sum(entry.size for entry in left) + chosen[-1].size > (keep or 0), "no more than is needed"


def test_layers_and_packages_go_before_bases_the_oldest_first() -> None:
    found = [
        listed(1, Kind.BASE, age=30 * DAY),
        listed(2, Kind.LAYER, age=2 * DAY),
        listed(3, Kind.PACKAGE, age=3 * DAY),
        listed(4, Kind.LAYER, age=HOUR / 2),
    ]
    expected = {40: [], 39: [3], 20: [3, 2], 10: [3, 2, 1], 0: [3, 2, 1]}
    for keep, numbers in expected.items():
        assert [int(entry.key, 16) for entry in choose(found, keep=keep, older=None, now=NOW)] == numbers


def test_an_entry_from_a_clock_that_was_wrong_goes_first() -> None:
    found = [listed(1, age=30 * DAY), listed(2, age=-DAY), listed(3, age=-HOUR / 2)]
    for keep, numbers in {30: [], 20: [2], 10: [2, 1], 0: [2, 1]}.items():
        assert [int(entry.key, 16) for entry in choose(found, keep=keep, older=None, now=NOW)] == numbers
    assert [int(entry.key, 16) for entry in choose(found, keep=None, older=60 * DAY, now=NOW)] == [2]


def test_many_entries_are_chosen_in_no_time() -> None:
    found = [listed(number, age=DAY + number) for number in range(20_000)]
    before = time.process_time()
    assert len(choose(found, keep=10_000, older=DAY + 15_000, now=NOW)) == 19_000
    assert time.process_time() - before < 5, "seconds; it was minutes where each entry was sought in a list"


def test_pruning_by_age_and_by_size(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name, age in (("a", 40 * DAY), ("b", 20 * DAY), ("c", 2 * HOUR), ("d", 0.0)):
        put(store, name, unused=age)
    before = names(store)
    assert len(prune(store, keep=0, dry_run=True).removed) == 3
    assert names(store) == before
    pruned = prune(store, older=30 * DAY)
    assert (len(pruned.removed), pruned.is_enough, names(store)) == (1, True, ["b", "c", "d"])
    pruned = prune(store, keep=pruned.left_bytes - 1)
    assert (names(store), pruned.is_enough) == (["c", "d"], True)
    pruned = prune(store, keep=0)
    assert (names(store), pruned.is_enough) == (["d"], False)
    assert leftovers(tmp_path) == []


def test_an_entry_that_is_used_while_it_is_removed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    entry = put(store, "a", unused=DAY)
    real = pruning.choose

    def choose_and_use(*arguments: object, **options: object) -> object:
        chosen = real(*arguments, **options)  # type: ignore[arg-type]
        assert store.find(entry.kind, entry.key) == entry
        return chosen

    monkeypatch.setattr(pruning, "choose", choose_and_use)
    pruned = prune(store, keep=0)
    assert (pruned.removed, names(store)) == ((), ["a"])


def test_a_damaged_entry_goes_unless_it_was_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry = put(store, "a")
    (entry.path.parent / "entry.json").write_text("{")
    os.utime(entry.path.parent, (1, 1))
    (damaged,) = prune(store, keep=0, dry_run=True).removed
    assert damaged.problem
    assert store.find(entry.kind, entry.key) is None
    put(store, "a")
    assert not remove_unused(store, damaged)
    assert names(store) == ["a"]
    (put(store, "a").path.parent / "entry.json").write_text("{")
    os.utime(entry.path.parent, (1, 1))
    assert len(prune(store, keep=0).removed) == 1


def test_two_processes_prune_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put(store, "a", unused=DAY)
    (found,) = prune(store, keep=0, dry_run=True).removed
    assert prune(store, keep=0).removed == (found,)
    assert not remove_unused(store, found)


def test_leftovers_of_killed_processes_and_old_notes_go(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry = put(store, "a")
    (tmp_path / "image.sif").touch()
    note_image(tmp_path, tmp_path / "image.sif", "r", [entry.path])
    (tmp_path / "image.sif").unlink()
    (tmp_path / "digests").mkdir()
    for name, age in (("1-1", 200 * DAY), ("1-2", DAY), (".1-3.new", 2 * HOUR), (".1-4.new", 0.0)):
        (tmp_path / "digests" / name).touch()
        os.utime(tmp_path / "digests" / name, (pruning.time.time() - age,) * 2)
    prune(store, older=DAY, dry_run=True)
    assert len(list((tmp_path / "digests").iterdir())) == 4
    prune(store, older=DAY)
    assert sorted(path.name for path in (tmp_path / "digests").iterdir()) == [".1-4.new", "1-2"]
    assert list((tmp_path / "images").iterdir()) == []
    assert images(tmp_path) == ()


def test_a_read_only_store_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    put(store, "a", unused=DAY)

    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "rename", read_only)
    with pytest.raises(MissingOnHost, match="Read-only file system") as refused:
        prune(store, keep=0)
    assert refused.value.code == "store-not-writable"
    assert names(store) == ["a"]


def test_a_store_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert prune(Store(tmp_path / "none"), keep=0).removed == ()
    assert not (tmp_path / "none").exists()
