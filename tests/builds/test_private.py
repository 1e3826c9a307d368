"""Copies of what other users can change; tests/real/test_damaged_image.py has a user who changes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.builds.private import PrivateFiles
from toolkit.definitions.definition import define
from toolkit.definitions.layered import layer_steps
from toolkit.recipes.model import Base, Bootstrap, FileCopy, Recipe

DATA = Path("/theirs/my data")
RECIPE = Recipe(
    "mine",
    Path("/mine/defs/mine.toml"),
    Base("b.sif", Bootstrap.LOCALIMAGE, "/b.sif"),
    files=(FileCopy(DATA, "/opt/data"), FileCopy(Path("/mine/own"), "/opt/own")),
)


@pytest.fixture
def files(tmp_path: Path) -> PrivateFiles:
    old, new = '"/theirs/my data" "/.ctk-files/1/my data"', '"files/1/my data" "/.ctk-files/1/my data"'
    return PrivateFiles(tmp_path, tmp_path / "cache", {DATA: Path("files/1/my data")}, {old: new})


def test_definition_copies_what_was_copied_by_a_path_without_the_host(files: PrivateFiles) -> None:
    before = define(RECIPE).text
    (old, new) = next(iter(files.lines.items()))
    after = files.in_text(before)
    assert after == before.replace(old, new)
    assert after != before
    with pytest.raises(ValueError, match="does not copy"):
        files.in_text(after)


def test_layers_take_the_copies_and_all_else_stays(files: PrivateFiles, tmp_path: Path) -> None:
    before = layer_steps(RECIPE)
    (step,) = files.in_layers(before).layers
    assert [item.source for item in step.inputs] == [tmp_path / "files/1/my data", Path("/mine/own")]
    assert replace(step, inputs=before.layers[0].inputs) == before.layers[0]


def test_files_are_copied_with_what_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/link").symlink_to("../table")
    (tmp_path / "table").write_text("1")
    (tmp_path / "work").mkdir()
    PrivateFiles(tmp_path / "work", tmp_path / "cache", {tmp_path / "data": Path("files/1/data")}, {}).run()
    assert (tmp_path / "work/files/1/data/link").read_text() == "1"
    assert not (tmp_path / "work/files/1/data/link").is_symlink()
