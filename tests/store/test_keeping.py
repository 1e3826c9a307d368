"""A process that runs for hours keeps what it has found."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.store.making import DAY, names, put, set_unused
from toolkit.store import keeping
from toolkit.store.pruning import prune
from toolkit.store.store import Kind, Store
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "SECONDS_BETWEEN_USES", 0.02)
    monkeypatch.setattr(keeping, "_used", {})
    monkeypatch.setattr(keeping, "_thread", None)  # that of other tests waits for ten minutes


def wait_for_a_use(record: Path) -> None:
    deadline = time.monotonic() + 30
    while record.stat().st_mtime < time.time() - DAY / 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_found_is_used_again_and_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry = put(store, "a")
    for _ in range(2):
        set_unused(entry, DAY)
        wait_for_a_use(entry.path.parent / "entry.json")
    assert prune(store, keep=0).removed == ()


def test_a_fork_keeps_what_it_finds_itself(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry = put(store, "a")
    child = os.fork()
    if child == 0:
        try:
            keeping._used.clear()
            store.find(entry.kind, entry.key)
            set_unused(entry, DAY)
            wait_for_a_use(entry.path.parent / "entry.json")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_is_gone_or_was_made_again_by_another_process_is_lost_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    gone, again, kept = (put(store, name) for name in "abc")
    store.discard(gone.kind, gone.key)
    record = again.path.parent / "entry.json"
    new = record.with_name("new")
    new.write_bytes(record.read_bytes())
    new.rename(record)
    assert keeping.forget_lost() == tuple(entry.path.parent / "entry.json" for entry in (gone, again))
    assert keeping.forget_lost() == ()
    assert set(keeping._used) == {kept.path.parent / "entry.json"}
    assert names(store) == ["b", "c"]


def test_what_cannot_be_noted_is_no_error(tmp_path: Path) -> None:
    keeping.keep_in_use(tmp_path / "missing" / "entry.json", tmp_path / "missing" / "image.sif")
    assert keeping._thread is None


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("change", ["removed", "replaced", "written"])
def test_base_that_changes_while_it_is_used_is_noticed(tmp_path: Path, shared: bool, change: str) -> None:
    owner = Store(tmp_path / "store")
    made = put(owner, "a", kind=Kind.BASE)
    keeping._used.clear()
    store = Store(tmp_path / "own", shared=(owner.own,)) if shared else owner
    entry = store.find(made.kind, made.key)
    assert entry is not None
    keeping.require_used(Kind.BASE)
    if change == "removed":
        entry.path.unlink()
    elif change == "replaced":
        (tmp_path / "other").write_bytes(entry.path.read_bytes())
        (tmp_path / "other").rename(entry.path)
    else:
        os.utime(entry.path, ns=(1, 1))
    keeping.require_used(Kind.LAYER)
    with pytest.raises(ProgramFailed, match="was removed or changed while it was used"):
        keeping.require_used(Kind.BASE)
    assert keeping.forget_lost() == (entry.path.parent / "entry.json",)
    keeping.require_used(Kind.BASE)
