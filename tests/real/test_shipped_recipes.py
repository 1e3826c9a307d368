"""The shipped recipes: each is locked over its base as it is recorded, and three run over a stand-in of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.bases.target import recorded_target
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.locking import make_lock
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User
    from toolkit.pins.lock.model import Lock

CATALOGUE = Catalogue(shipped("defs"), shipped("defs"))


@pytest.fixture(scope="module")
def uv(ground: Path) -> Uv:
    return open_uv(ground / "pins")


def lock(uv: Uv, name: str) -> Lock:
    recipe = CATALOGUE.recipe(name)
    target = recorded_target(recipe.base)
    assert target is not None, f"no Python is recorded of {recipe.base.name}"
    return make_lock(uv, recipe, BaseFacts(recipe.base, target, recipe.base.digest))


# What must come of a framework that the recipe itself adds, and what it must not change of its base's.
ADDED = {
    "chainer": {"cupy-cuda101": "7.8.0"},
    "cupy": {"cupy-cuda12x": "14."},
    "jax": {"jax-cuda12-plugin": "0.", "nvidia-cudnn-cu12": "9.10."},
}


@pytest.mark.parametrize("name", CATALOGUE.paths())
def test_a_shipped_recipe_is_locked_over_its_recorded_base(uv: Uv, name: str) -> None:
    made = lock(uv, name)
    versions = {package.name: package.version for package in made.packages}
    assert all(package.sha256 for package in made.packages)
    own = {pin.name: pin.version for pin in made.own.pins}
    for package, version in ADDED.get(name, {}).items():
        assert own[package].startswith(version), "it is protected from now on"
    frameworks = {package for package in versions if knowledge().framework_of(package) is not None}
    assert frameworks <= own.keys()
    assert made.base.architecture == "x86_64"
    assert not [note for note in made.notes if "may not work" in note]
