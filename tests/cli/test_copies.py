"""What a recipe copies is told before anything is built or fetched, and private files are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.cli.copies import require_copies
from toolkit.recipes.model import Base, Bootstrap, FileCopy, Recipe
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def recipe_of(project: Path, source: Path) -> Recipe:
    (project / "defs").mkdir(parents=True)
    base = Base("base.sif", Bootstrap.LOCALIMAGE, "/base.sif")
    return Recipe("mine", project / "defs/mine.toml", base, files=(FileCopy(source, "/opt/copy"),))


def test_private_file_needs_permission_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "key"
    key.write_text("secret")
    key.chmod(0o600)
    recipe = recipe_of(tmp_path / "project", key)
    with pytest.raises(WrongInput, match="would copy private files") as refused:
        require_copies(recipe, ())
    assert (refused.value.code, refused.value.exit_status) == ("private-file", 2)
    require_copies(recipe, [key])
    assert "[file-outside-project]" in capsys.readouterr().err


def test_symlink_to_nothing_is_refused_before_the_question_of_permission(tmp_path: Path) -> None:
    project = tmp_path / "project"
    recipe = recipe_of(project, project / "data")
    (project / "data").mkdir()
    (project / "data/link").symlink_to("nowhere")
    with pytest.raises(WrongInput, match="does not exist") as refused:
        require_copies(recipe, ())
    assert refused.value.code == "dangling-symlink"
