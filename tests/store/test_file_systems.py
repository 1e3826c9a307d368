"""Stores on file systems that are read-only, forbid to execute, or lack locks, in a mount namespace of this test's."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.store.making import DAY, leftovers, names, put
from toolkit.store.store import Kind, Store

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = """
import pathlib, sys
from tests.store.making import key_of, names, put
from toolkit.store.pruning import prune
from toolkit.store.store import Kind, Store
from toolkit.support.errors import MissingOnHost
store = Store(pathlib.Path(sys.argv[1]) / "store")
print(store.find(Kind.LAYER, key_of("kept")) is not None)
for act in (lambda: put(store, "new"), lambda: prune(store, keep=0)):
    try:
        act()
        print("done")
    except MissingOnHost as error:
        print(error.code, error.message)
print(names(store))
"""


def on(place: Path, options: str) -> list[str]:
    """What the program prints where `place` is mounted with other options."""
    script = f'mount --bind "$1" "$1" && mount -o remount,bind,{options} "$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", place, sys.executable, PROGRAM]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    put(store, "kept", unused=DAY)
    return store


@pytest.mark.programs
def test_a_read_only_store_is_read(store: Store) -> None:
    lines = on(store.own.parent, "ro")
    assert lines[0] == "True"
    assert lines[1].startswith("store-not-writable")
    assert "Read-only file system" in lines[1]
    assert lines[2].startswith("store-not-writable")
    assert "Read-only file system" in lines[2]
    assert lines[3] == "['kept']"


@pytest.mark.programs
def test_a_store_where_nothing_may_be_executed(store: Store) -> None:
    assert on(store.own.parent, "noexec,nosuid,nodev") == ["True", "done", "done", "['kept', 'new']"]


def test_a_store_without_locks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    put(store, "new")
    assert (names(store), leftovers(store.own)) == (["kept", "new"], [])


@pytest.mark.parametrize("refused", [os.link, os.symlink], ids=["hard links", "symlinks"])
def test_a_store_without_links(store: Store, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., None]) -> None:
    def not_permitted(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, refused.__name__, not_permitted)
    put(store, "new")
    assert names(store) == ["kept", "new"]


def test_a_store_that_is_read_while_its_entries_disappear(store: Store) -> None:
    """What another process prunes is not found, and never an error."""
    entry = store.find(Kind.LAYER, put(store, "kept").key)
    assert entry is not None
    with entry.path.open("rb") as opened:
        store.discard(Kind.LAYER, entry.key)
        assert opened.read() == b"content of kept", "what is open stays"
    assert store.find(Kind.LAYER, entry.key) is None
    store.use(entry)
    assert not Path(entry.path.parent).exists()
