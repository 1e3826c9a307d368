"""Whether an image is older than its recipe and its lock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.pins.bases.foreign import sandbox
from tests.pins.locks import ARM, SMALL, WHEEL
from toolkit.builds.outdated import made_from, outdated
from toolkit.builds.record import Record, RecordedBase, write_beside
from toolkit.pins.lock.lockfile import write_lock
from toolkit.recipes.load import load_recipe
from toolkit.recipes.model import Base

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.recipes.model import Recipe

BASES = {
    "a": Base("a", "localimage", "/images/a.sif"),
    "moved": Base("a", "localimage", "/other/a.sif"),
    "b": Base("b", "docker", "x/b:1"),
}
RECIPE = """base = "a"
packages = ["timm"]
description = "Mine"

[environment]
LEVEL = "1"

[job]
gpus = 1
"""


def recipe(directory: Path, old: str = "", new: str = "") -> Recipe:
    assert old in RECIPE
    (directory / "mine.toml").write_text(RECIPE.replace(old, new))
    return load_recipe(directory / "mine.toml", BASES)


def image(directory: Path, *, other_base: bool = False) -> Path:
    write_lock(SMALL, directory / "mine.lock.toml")
    sandbox = directory / "sb"
    sandbox.mkdir()
    made = made_from(recipe(directory), SMALL, other_base=other_base)
    write_beside(sandbox, Record("recipe:mine", RecordedBase("a"), made_from=made))
    return sandbox


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ('"timm"', '"timm>=1"', "packages"),
        ('LEVEL = "1"', 'LEVEL = "2"', "environment"),
        ('base = "a"', 'base = "b"\npost = "true"', "post, base"),
        ('base = "a"', 'base = "a"\napt = ["gcc"]\nfiles = [{from = "x", to = "/x"}]', "apt, files"),
    ],
)
def test_changed_recipe_is_named_with_its_keys(tmp_path: Path, old: str, new: str, changed: str) -> None:
    found = outdated(image(tmp_path), recipe(tmp_path, old, new), tmp_path)
    assert found is not None
    assert found.message == f"sb is out of date. Changed since the build: {tmp_path}/mine.toml: {changed}"
    assert found.fix == "ctk build mine rebuilds it."


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("gpus = 1", "gpus = 2"), ('"Mine"', '"Ours"'), ('base = "a"', 'base = "moved"')],
)
def test_what_is_not_in_the_image_does_not_count(tmp_path: Path, old: str, new: str) -> None:
    made = image(tmp_path)
    now = recipe(tmp_path, old, new)
    assert outdated(made, now, tmp_path) is None
    assert outdated(made, replace(now, name="other"), tmp_path) is None


def test_newer_lock_is_named(tmp_path: Path) -> None:
    made = image(tmp_path)
    write_lock(replace(SMALL, notes=("another note",)), tmp_path / "mine.lock.toml")
    assert outdated(made, recipe(tmp_path), tmp_path) is None
    write_lock(replace(SMALL, packages=(replace(WHEEL, version="1.1"),)), tmp_path / "mine.lock.toml")
    found = outdated(made, recipe(tmp_path), tmp_path)
    assert found is not None
    assert found.message == "sb is out of date. Changed since the build: the lock of mine"
    (tmp_path / "mine.lock.toml").write_text("[[[")
    assert outdated(made, recipe(tmp_path), tmp_path) is None


def test_image_on_another_base_is_compared_with_the_rest(tmp_path: Path) -> None:
    made = image(tmp_path, other_base=True)
    write_lock(replace(SMALL, packages=()), tmp_path / "mine.lock.toml")
    assert outdated(made, recipe(tmp_path, 'base = "a"', 'base = "b"'), tmp_path) is None
    assert outdated(made, recipe(tmp_path, '"timm"', '"timm>=1"'), tmp_path) is not None


def test_an_image_of_another_host_is_compared_with_the_lock_for_its_architecture(tmp_path: Path) -> None:
    made = image(tmp_path)
    sandbox(made, "aarch64")
    assert outdated(made, recipe(tmp_path), tmp_path) is None, "there is no lock for aarch64"
    write_lock(replace(ARM, packages=(replace(WHEEL, version="1.1"),)), tmp_path / "mine.lock.toml")
    found = outdated(made, recipe(tmp_path), tmp_path)
    assert found is not None
    assert "the lock of mine" in found.message
    write_lock(ARM, tmp_path / "mine.lock.toml")
    write_lock(replace(SMALL, packages=()), tmp_path / "mine.lock.toml")
    assert outdated(made, recipe(tmp_path), tmp_path) is None
