"""Which files of a recipe belong to other users. tests/real/test_other_users.py has two real users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.recipes import owners
from toolkit.recipes.catalogue import Catalogue
from toolkit.recipes.owners import judge_owners

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    (tmp_path / "defs/bases").mkdir(parents=True)
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped/theirs.toml").touch()
    return Catalogue(tmp_path / "defs", tmp_path / "shipped")


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files belong to another user."""
    monkeypatch.setattr(owners, "is_trusted", lambda uid: False)
    monkeypatch.setattr(owners, "user_name", lambda uid: "ann")


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize("file", ["mine.toml", "mine.lock.toml", "bases.toml", "bases/team.toml"])
def test_directory_and_file_of_another_user_are_one_finding(catalogue: Catalogue, file: str) -> None:
    (catalogue.own / file).touch()
    (found,) = judge_owners(catalogue, "mine")
    assert (found.code, found.severity) == ("recipe-of-another-user", "warning")
    assert found.message == (
        f"{catalogue.own} and 1 other file of the recipe belong to ann, not to you or root: a build runs the commands "
        "of that user"
    )


@pytest.mark.usefixtures("foreign")
def test_shipped_recipe_has_no_owner_to_tell(catalogue: Catalogue) -> None:
    assert judge_owners(catalogue, "theirs") == ()
    (catalogue.shipped / "bases.toml").touch()
    assert judge_owners(Catalogue(catalogue.shipped, catalogue.shipped), "theirs") == ()


def test_files_of_this_user_are_no_finding(catalogue: Catalogue) -> None:
    (catalogue.own / "mine.toml").touch()
    (catalogue.own / "mine.lock.toml").symlink_to("nowhere")
    assert judge_owners(catalogue, "mine") == ()
