"""All content is read again, whatever is remembered of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.store.making import names, put
from toolkit.store import digests
from toolkit.store.store import Kind, Store
from toolkit.store.verifying import verify

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def flip(path: Path) -> None:
    """Flip a bit of a file and keep its size and times."""
    before = path.stat()
    with path.open("r+b") as file:
        first = file.read(1)[0]
        file.seek(0)
        file.write(bytes([first ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_one_flipped_bit_is_named(tmp_path: Path) -> None:
    shared = Store(tmp_path / "shared")
    store = Store(tmp_path / "own", (shared.own,))
    for name, kind in (("a", Kind.BASE), ("b", Kind.LAYER), ("c-1.whl", Kind.PACKAGE)):
        put(store, name, kind)
    assert (verify(store).whole, verify(store).damaged) == (3, ())
    theirs = put(shared, "d")
    flip(theirs.path)
    mine = put(store, "b")
    flip(mine.path)
    found = verify(store)
    assert found.whole == 2
    assert [(listed.directory, listed.problem) for listed in found.damaged] == [
        (mine.path.parent, "its content does not have the recorded hash"),
        (theirs.path.parent, "its content does not have the recorded hash"),
    ] or {listed.directory for listed in found.damaged} == {mine.path.parent, theirs.path.parent}
    found = verify(store, remove=True)
    assert [listed.words for listed in found.removed] == ["b"]
    assert theirs.path.exists(), "a shared store is not changed"
    assert names(store) == ["a", "c-1.whl"]


def test_a_bit_that_the_disk_flipped_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither size nor times tell it: only reading does."""
    store = Store(tmp_path)
    monkeypatch.setattr(digests, "_SETTLED_NS", 0)
    entry = put(store, "a")
    store.find(entry.kind, entry.key)
    real = digests.compute
    monkeypatch.setattr(digests, "compute", lambda descriptor: real(descriptor).replace("a", "b").replace("0", "1"))
    assert store.find(entry.kind, entry.key) == entry
    assert len(verify(store).damaged) == 1


def test_an_entry_that_is_pruned_meanwhile_is_not_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry = put(store, "a")

    def vanish(_: object) -> None:
        entry.path.unlink()
        (entry.path.parent / "entry.json").unlink()
        entry.path.parent.rmdir()

    found = verify(store, on_entry=vanish)
    assert (found.whole, found.damaged) == (0, ())


def test_a_missing_content_is_damage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put(store, "a").path.unlink()
    (listed,) = verify(store).damaged
    assert listed.problem in ("a file of it is missing", "No such file or directory")
