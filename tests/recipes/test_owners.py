"""Which files of a recipe belong to other users. tests/real/test_other_users.py has two real users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.recipes import owners
from toolkit.recipes.catalogue import Catalogue
from toolkit.recipes.owners import judge_image, judge_owners

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


def test_image_of_this_user_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "a.sif").touch(mode=0o644)
    assert judge_image(tmp_path / "a.sif", "the job") == ()
    assert judge_image(tmp_path / "none.sif", "the job") == ()


@pytest.mark.usefixtures("foreign")
def test_image_of_another_user_and_a_link_to_it_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.sif").touch(mode=0o644)
    (tmp_path / "link.sif").symlink_to("a.sif")
    (found,) = judge_image(tmp_path / "a.sif", "the job")
    assert (found.code, found.severity) == ("image-of-another-user", "warning")
    words = "ann, not to you or root: the job runs what that user put there"
    assert found.message == f"{tmp_path}/a.sif belongs to {words}"
    (found,) = judge_image(tmp_path / "link.sif", "the job")
    assert found.message == f"{tmp_path}/link.sif is a symlink of {words}"


@pytest.mark.parametrize(
    ("image", "directory", "told"),
    [(0o666, 0o755, "a.sif"), (0o644, 0o777, ""), (0o644, 0o1777, None), (0o664, 0o2775, None)],
)
def test_image_that_any_user_can_change_is_told(tmp_path: Path, image: int, directory: int, told: str | None) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "a.sif").touch()
    (place / "a.sif").chmod(image)
    place.chmod(directory)
    found = judge_image(place / "a.sif", "the job")
    assert [finding.code for finding in found] == (["image-open-to-others"] if told is not None else [])
    assert told is None or found[0].fix == f"Remove that permission: chmod o-w {place / told}"
