"""A recipe and a lock out of an image: what is written, what is kept, and what a damaged image gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.builds.record import Record, RecordedBase
from toolkit.builds.restore import lock_text, recipe_text, restore
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.errors import WrongInput

IMAGE = Path("x.sif")
RECIPE = 'base = "team"\npackages = ["six"]\n'
LOCK = 'schema = "ctk.lock/1"\nrecipe = "mine"\n'
ENTRY = '[team]\nbootstrap = "docker"\nreference = "h.example/team:1"\n'
FULL = Record("recipe:mine", RecordedBase("team", entry=ENTRY), recipe=RECIPE, lock=LOCK)


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped/bases.toml").write_text('[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n')
    return Catalogue(tmp_path / "again/defs", tmp_path / "shipped")


def give_back(catalogue: Catalogue, record: Record | None = FULL, *, force: bool = False) -> list[str]:
    done = restore(IMAGE, record, catalogue, recipe=True, lock=True, force=force)
    return [path.name for path in done.written]


def test_recipe_lock_and_an_unknown_base_are_written(catalogue: Catalogue) -> None:
    assert give_back(catalogue) == ["mine.toml", "mine.lock.toml", "bases.toml"]
    assert (catalogue.own / "mine.toml").read_text() == RECIPE == recipe_text(IMAGE, FULL)
    assert (catalogue.own / "mine.lock.toml").read_text() == LOCK == lock_text(IMAGE, FULL)
    assert catalogue.recipe("mine").base.reference == "h.example/team:1"
    assert give_back(catalogue) == ["mine.toml", "mine.lock.toml"]  # the same again


@pytest.mark.parametrize("description", ["", 'description = "ours"\nchecked = 2026-11-21\n'])
def test_base_that_is_known_here_is_not_written_again(catalogue: Catalogue, description: str) -> None:
    (catalogue.shipped / "bases.toml").write_text(ENTRY + description)
    assert give_back(catalogue) == ["mine.toml", "mine.lock.toml"]


def test_another_base_of_that_name_is_replaced_only_if_it_was_shipped(catalogue: Catalogue) -> None:
    other = ENTRY.replace("team:1", "team:2")
    (catalogue.shipped / "bases.toml").write_text(other)
    assert give_back(catalogue)[-1] == "bases.toml"
    assert catalogue.recipe("mine").base.reference == "h.example/team:1"
    (catalogue.own / "bases.toml").write_text(other)
    with pytest.raises(WrongInput, match=r"bases\.toml exists and has another base team"):
        give_back(catalogue)
    give_back(catalogue, force=True)
    assert catalogue.recipe("mine").base.reference == "h.example/team:1"


@pytest.mark.parametrize("name", ["mine.toml", "mine.lock.toml"])
def test_file_of_the_user_is_kept_and_nothing_is_written(catalogue: Catalogue, name: str) -> None:
    catalogue.own.mkdir(parents=True)
    (catalogue.own / name).write_text("# my own\n")
    with pytest.raises(WrongInput, match=f"{name} exists and has other content") as caught:
        give_back(catalogue)
    assert caught.value.fix
    assert "--force" in caught.value.fix
    assert [(path.name, path.read_text()) for path in catalogue.own.iterdir()] == [(name, "# my own\n")]
    give_back(catalogue, force=True)
    assert "# my own" not in (catalogue.own / name).read_text()


def test_nothing_is_written_through_a_symlink(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.own.mkdir(parents=True)
    (catalogue.own / "mine.toml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongInput, match="symlink"):
        give_back(catalogue, force=True)
    assert not (tmp_path / "elsewhere").exists()


def test_files_that_the_image_does_not_hold_are_named(catalogue: Catalogue) -> None:
    files = "".join(f'[[files]]\nfrom = "{name}"\nto = "/opt"\n' for name in ("../src", "./a.csv", "./b.csv"))
    record = Record("recipe:mine", RecordedBase("team.sif"), recipe=f'base = "./team.sif"\n{files}')
    catalogue.own.mkdir(parents=True)
    (catalogue.own / "b.csv").touch()
    done = restore(IMAGE, record, catalogue, recipe=True, lock=False, force=False)
    assert done.missing == (catalogue.own.parent / "src", catalogue.own / "a.csv", catalogue.own / "team.sif")


def test_recipe_that_installs_nothing_has_no_lock(catalogue: Catalogue) -> None:
    record = Record("recipe:mine", RecordedBase("debian-12"), recipe='base = "debian-12"\n')
    assert give_back(catalogue, record) == ["mine.toml"]
    with pytest.raises(WrongInput, match="its recipe installs nothing"):
        restore(IMAGE, record, catalogue, recipe=False, lock=True, force=False)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "it was not built by ctk"),
        (Record("definition:k.def#0"), "it was built from definition:k.def#0, which is not a recipe"),
        (Record("recipe:mine"), "an earlier version of ctk built it"),
        (Record("recipe:../../.bashrc", recipe=RECIPE, lock=LOCK), "is not a recipe name"),
        (Record("recipe:bases", recipe=RECIPE, lock=LOCK), "is not a recipe name"),
        (Record("recipe:mine", recipe="\x1b[2J", lock="\x1b[2J"), "is not TOML"),
        (Record("recipe:mine", RecordedBase("x", entry="["), recipe=RECIPE, lock=LOCK), "is not TOML"),
    ],
)
def test_image_without_a_usable_recipe_is_refused(catalogue: Catalogue, record: Record | None, reason: str) -> None:
    with pytest.raises(WrongInput, match=reason):
        give_back(catalogue, record)
    assert not catalogue.own.exists()
