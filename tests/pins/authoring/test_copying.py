"""`ctk new --like`: a recipe under another name, with its files, and nothing of the user's overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.authoring.copying import copy_recipe
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """# What it is for
base = "debian-12"
[[files]]
from = "demo/train.py"  # the script
to = "/opt/demo/train.py"
[[files]]
from = "shared/sets"
to = "/opt/sets"
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    for directory in ("shipped/demo", "shipped/shared/sets", "own"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "shipped/bases.toml").write_text('[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n')
    (tmp_path / "shipped/demo.toml").write_text(TEXT)
    (tmp_path / "shipped/demo/train.py").write_text("print('shipped')\n")
    (tmp_path / "shipped/shared/sets/a.csv").write_text("1\n")
    return Catalogue(tmp_path / "own", tmp_path / "shipped")


def test_a_copy_has_the_script_in_a_directory_of_its_name(catalogue: Catalogue) -> None:
    own = catalogue.own
    written = copy_recipe(catalogue, "demo", "mine", force=False)
    assert written == [own / "mine.toml", own / "mine/train.py", own / "shared/sets"]
    assert (own / "mine.toml").read_text() == TEXT.replace('"demo/train.py"', '"mine/train.py"')
    assert (own / "mine/train.py").read_text() == "print('shipped')\n"
    assert (own / "shared/sets/a.csv").read_text() == "1\n"
    assert [copy.source for copy in catalogue.recipe("mine").files] == written[1:]


def test_a_copy_of_an_own_recipe_uses_its_other_files(catalogue: Catalogue) -> None:
    copy_recipe(catalogue, "demo", "mine", force=False)
    written = copy_recipe(catalogue, "mine", "other", force=False)
    assert written == [catalogue.own / "other.toml", catalogue.own / "other/train.py"]
    assert 'from = "shared/sets"' in (catalogue.own / "other.toml").read_text()


@pytest.mark.parametrize("there", ["mine.toml", "mine/train.py", "shared/sets/notes.txt"])
def test_nothing_that_exists_is_replaced_unasked(catalogue: Catalogue, there: str) -> None:
    path = catalogue.own / there
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("my own\n")
    with pytest.raises(WrongInput, match="already exists"):
        copy_recipe(catalogue, "demo", "mine", force=False)
    assert [file for file in catalogue.own.rglob("*") if file.is_file()] == [path]
    copy_recipe(catalogue, "demo", "mine", force=True)
    assert (catalogue.own / "mine/train.py").read_text() == "print('shipped')\n"


def test_a_link_is_not_written_through(catalogue: Catalogue, tmp_path: Path) -> None:
    (catalogue.own / "mine.toml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongInput, match="symlink"):
        copy_recipe(catalogue, "demo", "mine", force=True)
    assert not (tmp_path / "elsewhere").exists()


def test_a_recipe_that_is_not_there_is_not_copied(catalogue: Catalogue) -> None:
    with pytest.raises(WrongInput, match='there is no recipe "dmo"'):
        copy_recipe(catalogue, "dmo", "mine", force=False)
