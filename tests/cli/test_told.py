"""Warnings that are told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.cli.told import not_told
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from pathlib import Path

FOUND = Finding("base-outside-project", Severity.WARNING, "the base x is /x, which is outside the project")
OTHER = Finding("base-outside-project", Severity.WARNING, "the base y is /y, which is outside the project")


def test_each_is_told_once_for_a_recipe(tmp_path: Path) -> None:
    area, recipe = tmp_path, tmp_path / "defs/mine.toml"
    assert not_told(recipe, [FOUND], area) == (FOUND,)
    assert not_told(recipe, [FOUND, OTHER], area) == (OTHER,)
    assert not_told(recipe, [FOUND, OTHER], area) == ()
    assert not_told(recipe.with_name("other.toml"), [FOUND], area) == (FOUND,)


def test_what_cannot_be_noted_is_told_again(tmp_path: Path) -> None:
    (tmp_path / "told").touch()
    for _ in range(2):
        assert not_told(tmp_path / "mine.toml", [FOUND], tmp_path) == (FOUND,)
