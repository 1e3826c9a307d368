"""`ctk list` and `ctk bases` as a user meets them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from toolkit.recipes.catalogue import Catalogue

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Ctk
    from toolkit.recipes.model import Recipe


def test_through_a_pipe_a_table_is_one_row_a_line(ctk: Ctk) -> None:
    rows = [line.split("\t") for line in ctk("bases").stdout.splitlines()]
    assert rows[0] == ["base", "family", "framework", "Python", "CUDA", "GPUs", "driver", "digest"]
    assert {len(row) for row in rows} == {8}


def test_in_a_checkout_the_recipes_are_shipped_ones(ctk: Ctk) -> None:
    from toolkit.support.paths import shipped

    (ctk.directory / "defs").symlink_to(shipped("defs"))
    assert {line.split("\t")[3] for line in ctk("list").stdout.splitlines()[1:]} == {"shipped"}


def test_list_shows_the_recipes_that_can_be_read_and_names_the_others(ctk: Ctk) -> None:
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "defs/good.toml").write_text('base = "debian-12"\n')
    (ctk.directory / "defs/bad.toml").write_text("broken")
    (ctk.directory / "defs/worse.toml").mkdir()
    listed = ctk("list", status=2)
    assert "good\tdebian-12\town\t" in listed.stdout
    assert "keras-bert\t" in listed.stdout
    assert "✗ bad: " in listed.stderr
    assert "bad.toml is not TOML" in listed.stderr
    assert "✗ worse: " in listed.stderr
    document = json.loads(ctk("list", "--json", status=2).stdout)
    assert [finding["code"] for finding in document["findings"]] == ["broken-recipe"] * 2
    assert "good" in {row["name"] for row in document["recipes"]}


def test_a_recipe_that_is_removed_while_it_is_listed_is_listed(ctk: Ctk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ctk.directory / "defs/gone.toml"
    path.parent.mkdir()
    path.write_text('base = "debian-12"\n')
    read = Catalogue.recipe

    def read_and_remove(catalogue: Catalogue, name: str, **more: Any) -> Recipe:
        found = read(catalogue, name, **more)
        if name == "gone":
            path.unlink()
        return found

    monkeypatch.setattr(Catalogue, "recipe", read_and_remove)
    assert "gone\tdebian-12\town\t" in ctk("list").stdout
