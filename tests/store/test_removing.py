"""An entry disappears by one rename, and not while another process has made it again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.store.making import leftovers, names, put
from toolkit.store.removing import identity, remove_entry, sweep_removed
from toolkit.store.store import Store


def test_an_entry_is_removed_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = put(store, "a").path.parent
    assert remove_entry(path, store.digests, lambda _: True)
    assert not remove_entry(path, store.digests, lambda _: True)
    assert identity(path) is None
    assert leftovers(tmp_path) == []


def test_an_entry_that_shall_stay_is_not_touched(tmp_path: Path) -> None:
    """While it has another name, another process may sweep it."""
    store = Store(tmp_path)
    path = put(store, "a").path.parent
    looked_at: list[Path] = []

    def never(where: Path) -> bool:
        looked_at.append(where)
        return False

    assert not remove_entry(path, store.digests, never)
    assert looked_at == [path]
    assert names(store) == ["a"]


def test_an_entry_that_was_used_meanwhile_gets_its_name_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = put(store, "a").path.parent
    assert not remove_entry(path, store.digests, lambda where: where == path)
    assert names(store) == ["a"]


def test_an_entry_that_was_made_again_meanwhile_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry = put(store, "a")

    def made_again(where: Path) -> bool:
        if where == entry.path.parent:
            return True
        put(store, "a", text=b"new")
        return False

    remove_entry(entry.path.parent, store.digests, made_again)
    assert entry.path.read_bytes() == b"new"
    assert leftovers(tmp_path) == []


def test_what_was_left_by_a_kill_is_removed_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    entry = put(store, "a")
    with monkeypatch.context() as patch:
        patch.setattr("toolkit.store.removing._delete", lambda _: None)
        remove_entry(entry.path.parent, store.digests, lambda _: True)
    assert len(leftovers(tmp_path)) == 1
    sweep_removed(tmp_path)
    assert leftovers(tmp_path) == []
    with monkeypatch.context() as patch:
        patch.setattr("toolkit.store.removing._delete", lambda _: None)
        remove_entry(put(store, "b").path.parent, store.digests, lambda _: True)
    put(store, "c")
    assert (names(store), leftovers(tmp_path)) == (["c"], [])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_quota_that_forbids_a_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    store = Store(tmp_path)
    kept, entry = put(store, "kept"), put(store, "a")

    def is_full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "rename", is_full)
    assert not remove_entry(kept.path.parent, store.digests, lambda _: False)
    assert remove_entry(entry.path.parent, store.digests, lambda _: True)
    assert names(store) == ["kept"]
    assert not entry.path.parent.exists()
