"""A build whose entry of the store disappears begins again, and no other one does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.store.making import put
from toolkit.builds import whole
from toolkit.builds.context import Listener
from toolkit.store.store import Kind, Store
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolkit.store.store import Entry

Run = tuple[list[str], "BaseException | None"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], str]], Run]:
    """Build with this function in the place of `execute`; the steps that were told, and the error."""

    def running(execute: Callable[[int], str]) -> Run:
        said: list[str] = []
        attempts = iter(range(9))
        monkeypatch.setattr(whole, "refuse_second", lambda _: None)
        monkeypatch.setattr(whole, "resolve", lambda *_: "plan")
        monkeypatch.setattr(whole, "execute", lambda *_: execute(next(attempts)))
        nothing = cast("Any", None)
        try:
            plan, built = whole.build(nothing, nothing, Listener(on_step=said.append), lambda _: said.append("planned"))
        except (ProgramFailed, OSError) as error:
            return said, error
        assert (cast("Any", plan), cast("Any", built)) == ("plan", "built")
        return said, None

    return running


def losing(store: Store, entry: Entry, attempts: int) -> Callable[[int], str]:
    def execute(attempt: int) -> str:
        assert store.find(entry.kind, entry.key) or put(store, "image.sif", Kind.BASE)
        if attempt >= attempts:
            return "built"
        store.discard(entry.kind, entry.key)
        raise FileNotFoundError(str(entry.path))

    return execute


def test_a_build_that_loses_its_base_begins_again(tmp_path: Path, run: Callable[[Callable[[int], str]], Run]) -> None:
    store = Store(tmp_path)
    again = "the store lost an entry that the build used: building again"
    said, error = run(losing(store, put(store, "image.sif", Kind.BASE), 2))
    assert (said, error) == (["planned", again, "planned", again, "planned"], None)


def test_a_build_that_loses_its_base_each_time_ends(tmp_path: Path, run: Callable[[Callable[[int], str]], Run]) -> None:
    store = Store(tmp_path)
    said, error = run(losing(store, put(store, "image.sif", Kind.BASE), 9))
    assert said.count("planned") == 3
    assert isinstance(error, FileNotFoundError)


def test_another_failure_is_not_repeated(tmp_path: Path, run: Callable[[Callable[[int], str]], Run]) -> None:
    put(Store(tmp_path), "image.sif", Kind.BASE)

    def execute(_: int) -> str:
        raise ProgramFailed("the step failed")

    said, error = run(execute)
    assert (said, str(error)) == (["planned"], "the step failed")
