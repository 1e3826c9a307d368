"""A lock that only gets more packages: the same as if the index was asked for all of them, with fewer questions."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.pins.python_targets import distribution, target
from tests.pins.small_index import Listed, serve_pages
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.lock.upgrade import Upgrade
from toolkit.pins.locking import make_lock
from toolkit.recipes.model import Base, Bootstrap, Recipe
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.pins.lock.model import Lock
    from toolkit.support.processes import Completed

pytestmark = pytest.mark.index

PLAIN = target(distribution("pip", "24.2"), distribution("there", "1.0"), python="3.11.2")
BASE = Base("base", Bootstrap.LOCALIMAGE, "/base.sif")
FILES = [
    *(Listed(f"a-{version}.0-py3-none-any.whl", python=">=3.7") for version in (1, 2, 3)),
    Listed("b-1.0-py3-none-any.whl", ("a<3",), uploaded="2026-01-01T00:00:00Z"),
    Listed("b-2.0-py3-none-any.whl", ("a", "there<2"), uploaded="2026-06-01T00:00:00Z"),
    Listed("c-1.0-py3-none-any.whl", ("a<2",)),
    Listed("c-2.0-py3-none-any.whl", ("a<3", "d")),
    Listed("d-1.0-py3-none-any.whl"),
    Listed("d-1.1-py3-none-any.whl", ('e; extra == "more"',)),
    Listed("d-1.2-py3-none-any.whl", python="<3.11"),
    Listed("e-1.0-py3-none-any.whl", ("there",)),
    Listed("e-2.0-py3-none-any.whl", ("f", "there>1")),
    Listed("f-1.0-py3-none-any.whl"),
    Listed("f-2.0-py3-none-any.whl", yanked=True),
    Listed("there-1.0-py3-none-any.whl"),
    Listed("there-2.0-py3-none-any.whl"),
]
LINES = ("a", "a<3", "b", "b==1.0", "c", "c>=2", "d", "d[more]", "e", "e<2", "f", "f==2.0")


class Asking(Uv):
    """uv that notes what it asks the index for."""

    def _run(self, arguments: Sequence[str], directory: Path) -> Completed:
        if "--offline" not in arguments:
            _online.setdefault(self.cache, []).append(set((directory / "packages.txt").read_text().split()))
        return Uv._run(self, arguments, directory)

    def asked(self) -> list[set[str]]:
        """The packages of each question to the index since this was called last."""
        return _online.pop(self.cache, [])


_online: dict[Path, list[set[str]]] = {}


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    with serve_pages(FILES) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", address)
        yield address


@contextmanager
def asking() -> Iterator[Asking]:
    """uv with an empty cache."""
    with TemporaryDirectory() as area:
        opened = open_uv(Path(area))
        yield Asking(opened.program, Path(area) / "cache", Path(area) / "tmp")


def lock(uv: Uv, packages: Sequence[str], earlier: Lock | None = None, upgrade: str = "") -> Lock | str:
    """The lock, or why there is none."""
    recipe = Recipe("x", Path("x.toml"), BASE, packages=tuple(packages))
    chosen = Upgrade(frozenset([upgrade])) if upgrade else Upgrade()
    try:
        return make_lock(uv, recipe, BaseFacts(BASE, PLAIN, "sha256:0"), earlier=earlier, upgrade=chosen)
    except CheckFailed as error:
        return f"{error.message}\n{error.fix}"


@given(st.lists(st.sampled_from(LINES), unique=True, max_size=4), st.lists(st.sampled_from(LINES), unique=True))
@examples(2, deadline=None)
def test_lock_is_the_same_as_if_all_were_looked_up(index: str, before: list[str], after: list[str]) -> None:
    with asking() as uv, asking() as other:
        earlier = lock(uv, before)
        if isinstance(earlier, str):
            return
        assert lock(uv, after, earlier) == lock(other, after, earlier)
    assert index


def test_index_is_asked_only_for_what_is_added(index: str) -> None:
    with asking() as uv:
        earlier = lock(uv, ["b", "d"])
        assert not isinstance(earlier, str)
        assert uv.asked()[0] == {"b", "d"}
        found = lock(uv, ["b", "d", "f"], earlier)
        assert not isinstance(found, str)
        assert found.versions == {"a": "3.0", "b": "2.0", "d": "1.1", "f": "1.0"}
        assert uv.asked() == [{"f"}]
        uv.asked()
        less = lock(uv, ["b", "f"], found)
        assert not isinstance(less, str)
        assert less.versions == {"a": "3.0", "b": "2.0", "f": "1.0"}
        assert uv.asked() == []
    assert index


def test_index_is_asked_for_all_if_a_locked_version_cannot_stay(index: str) -> None:
    with asking() as uv:
        earlier = lock(uv, ["a", "d"])
        assert not isinstance(earlier, str)
        uv.asked()
        found = lock(uv, ["a", "c>=2", "d"], earlier)
        assert not isinstance(found, str)
        assert found.versions == {"a": "2.0", "c": "2.0", "d": "1.1"}
        assert {"a", "c>=2", "d"} in uv.asked()
    assert index


def test_index_is_asked_for_all_if_a_package_is_upgraded_or_the_question_is_old(index: str) -> None:
    with asking() as uv:
        earlier = lock(uv, ["b", "d"])
        assert not isinstance(earlier, str)
        uv.asked()
        lock(uv, ["b", "d", "f"], earlier, upgrade="b")
        assert {"b", "d", "f"} in uv.asked()
        uv.asked()
        for file in uv.cache.glob("ctk-asked/*"):
            file.write_text("{}")
        lock(uv, ["b", "d", "e"], earlier)
        assert {"b", "d", "e"} in uv.asked()
        uv.asked()
        lock(uv, ["b", "d", "f==1.0"], replace(earlier, exclude_newer="2026-01-01"))
        assert {"b", "d", "f==1.0"} in uv.asked()
    assert index
