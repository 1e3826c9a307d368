"""The shipped recipes as they are read: grouped, described, and with the script that they run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from toolkit.recipes.catalogue import Catalogue
from toolkit.support.paths import shipped

CATALOGUE = Catalogue(shipped("defs"), shipped("defs"))
# The first steps of a user with a script of their own.
WITHOUT_SCRIPT = ("pytorch", "tensorflow")


@pytest.mark.parametrize("name", CATALOGUE.paths())
def test_a_shipped_recipe_has_a_group_and_its_script(name: str) -> None:
    recipe = CATALOGUE.recipe(name)
    assert recipe.group
    assert recipe.description
    assert recipe.base.broken is None
    if name in WITHOUT_SCRIPT:
        return
    [copy] = recipe.files
    assert recipe.job.command == ("python3", copy.target)
    assert Path(copy.target).name == copy.source.name
    text = copy.source.read_text(encoding="utf-8")
    ast.parse(text)
    assert "device" in text or name == "demo", "it says which device it used"


def test_the_scripts_for_python_3_6_have_its_syntax() -> None:
    for name in ("keras-bert-2020", "chainer"):
        [copy] = CATALOGUE.recipe(name).files
        ast.parse(copy.source.read_text(encoding="utf-8"), feature_version=(3, 6))
