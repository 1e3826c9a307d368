"""Which layers of packages a build takes from the store, and which it makes; the scripts themselves do not run here.

tests/real/test_added_packages.py and test_layer_store.py run them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.builds.layers.test_chain import DIGEST, HUB, locked_wheel, planned
from tests.pins.locks import SMALL
from toolkit.builds.context import Listener
from toolkit.builds.layers import steps
from toolkit.builds.layers.added import MAX_ADDED
from toolkit.builds.layers.chain import key_of_base
from toolkit.builds.layers.layer import Layer
from toolkit.builds.layers.steps import StepLayers
from toolkit.builds.layers.stored import Stored
from toolkit.builds.transcript import Transcript
from toolkit.definitions.layered import packages_step
from toolkit.pins.store import Found
from toolkit.store.store import Kind
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolkit.builds.context import BuildContext


Build = Callable[..., tuple[list[str], list[str]]]


class Kept:
    """The layers in a store whose content nobody reads."""

    def __init__(self, there: BuildContext, *, fresh: bool) -> None:
        self.store, self.fresh = there.store, fresh

    def find(self, key: str) -> Stored | None:
        entry = None if self.fresh else self.store.find(Kind.LAYER, key)
        return None if entry is None else Stored(Layer(entry.path, entry.path.read_text(), 1))

    def keep(self, key: str, layer: Layer, _scratch: Path, about: Mapping[str, str]) -> Layer:
        if self.fresh:
            self.store.discard(Kind.LAYER, key)
        entry = self.store.publish(Kind.LAYER, key, layer.path, about)
        return replace(layer, path=entry.path)


@pytest.fixture
def build(here: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Builds the packages that the letters name; returns the titles of the steps that ran, and the layers."""
    recipe, plan, there = planned(here, HUB, DIGEST)
    there.locks.cache.mkdir(parents=True, exist_ok=True)
    ran: list[str] = []

    def make_layer(_script: str, *_: object, **__: object) -> Layer:
        file = here / f"layer-{len(ran)}"
        file.write_text(f"layer {len(ran)}")
        return Layer(file, file.read_text(), 1)

    monkeypatch.setattr(steps, "make_layer", make_layer)
    monkeypatch.setattr(steps, "only_adds", lambda *_: True)
    monkeypatch.setattr(steps, "require_room", lambda *_: None)

    def run(letters: str, *, fresh: bool = False) -> tuple[list[str], list[str]]:
        lock = replace(SMALL, packages=tuple(map(locked_wheel, letters)), builds=())
        listener = Listener(on_step=ran.append)
        log = Transcript(io.StringIO(), listener)
        state = SimpleNamespace(
            plan=replace(plan, locked=Found(lock, here / "x.lock.toml")),
            context=there,
            listener=listener,
            transcript=log,
        )
        before = key_of_base(recipe, here / "base.sif", state.plan, there)
        made = StepLayers(
            here / "base.sif",
            state,  # type: ignore[arg-type]
            SimpleNamespace(directory=here),  # type: ignore[arg-type]
            Kept(there, fresh=fresh),  # type: ignore[arg-type]
            None,
        )
        start = len(ran)
        assert made.add(packages_step(lock), before) is not None
        assert [layer.path for layer in made.layers] == list(made.guarded.packages)
        return ran[start:], [layer.name for layer in made.layers]

    return run


def test_only_what_is_added_is_installed_up_to_the_bound(build: Build) -> None:
    assert build("a") == (["Python packages"], ["layer 1"])
    assert build("ab") == (["added b"], ["layer 1", "layer 2"])
    assert build("ab") == ([], ["layer 1", "layer 2"])
    assert build("abc") == (["added c"], ["layer 1", "layer 2", "layer 3"])
    assert build("abcde")[0] == ["added d, e"]
    titles, layers = build("abcdef")
    assert titles == ["added d, e, f"], "three layers are there: the last one is made again, with what is new"
    assert len(layers) == 1 + MAX_ADDED


def test_forced_build_installs_all_and_forgets_older_layers(build: Build) -> None:
    build("a")
    build("ab")
    assert build("ab", fresh=True) == (["Python packages"], ["layer 3"])
    assert build("ab") == ([], ["layer 3"])
    assert build("abc") == (["added c"], ["layer 3", "layer 4"])


def test_package_that_replaces_a_file_is_installed_with_all_others(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("a")
    monkeypatch.setattr(steps, "only_adds", lambda *_: False)
    assert build("ab") == (["added b", "Python packages"], ["layer 3"])
    assert build("ab") == ([], ["layer 3"])


def test_image_without_a_place_for_one_more_layer_has_one_for_all(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_base: Path, layers: int) -> None:
        if layers > 3:
            raise WrongInput("too many")

    build("a")
    monkeypatch.setattr(steps, "require_room", refuse)
    assert build("ab") == (["Python packages"], ["layer 2"])
