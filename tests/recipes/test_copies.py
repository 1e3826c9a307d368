"""Copies of a recipe's files: whole and with their modes, or none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.recipes.copies import copy_files
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    (tmp_path / "origin/sets/empty").mkdir(parents=True)
    (tmp_path / "origin/sets/a.csv").write_text("1\n")
    (tmp_path / "origin/run.py").write_text("print(1)\n")
    (tmp_path / "origin/run.py").chmod(0o755)
    return tmp_path / "origin"


def test_files_and_directories_are_copied_and_replaced(origin: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    copies = {origin / "sets": new / "sets", origin / "run.py": new / "deep/run.py"}
    copy_files(copies, origin, new)
    assert (new / "sets/empty").is_dir()
    assert (new / "deep/run.py").stat().st_mode & 0o700 == 0o700
    (origin / "sets/a.csv").write_text("2\n")
    (new / "sets/b.csv").write_text("my own\n")
    copy_files(copies, origin, new)
    assert [(new / "sets" / name).read_text() for name in ("a.csv", "b.csv")] == ["2\n", "my own\n"]


def test_nothing_is_written_if_one_file_is_refused(origin: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    (origin / "key").symlink_to(tmp_path / "id_rsa")
    with pytest.raises(WrongInput, match="key is a symlink to") as caught:
        copy_files({origin / "run.py": new / "run.py", origin / "key": new / "key"}, origin, new)
    assert caught.value.code == "link-in-recipe"
    with pytest.raises(WrongInput, match=r"contains `\.\.`"):
        copy_files({origin / "run.py": new / "../run.py"}, origin, new)
    assert not new.exists()


def test_a_directory_in_place_of_a_file_is_not_replaced(origin: Path, tmp_path: Path) -> None:
    (tmp_path / "new/sets/a.csv").mkdir(parents=True)
    with pytest.raises(WrongInput, match=r"a\.csv: it exists and is a directory"):
        copy_files({origin / "sets": tmp_path / "new/sets"}, origin, tmp_path / "new")
