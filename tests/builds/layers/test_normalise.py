"""Marks of overlays become whiteouts; what changed nothing goes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.builds.layers.trees import lower
from toolkit.builds.layers.normalise import CannotNormalise, Changes, normalise

if TYPE_CHECKING:
    from pathlib import Path


def whiteouts(upper: Path) -> set[str]:
    return {str(path.relative_to(upper)) for path in upper.rglob("*") if path.is_char_device()}


def test_unchanged_directories_are_removed(tmp_path: Path) -> None:
    found = lower(tmp_path / "low", {"usr/bin/x": "", "srv/": ""})
    upper = tmp_path / "upper"
    (upper / "usr/bin").mkdir(parents=True)
    (upper / "srv").mkdir(mode=0o700)
    for path in (upper / "usr", upper / "usr/bin"):
        path.chmod(0o755)
        os.utime(path, (1, 1))
    normalise(str(upper), found)
    if os.geteuid() == 0:  # the base is root's
        assert [path.name for path in upper.iterdir()] == ["srv"]
    assert (upper / "srv").is_dir()


def test_opaque_directory_becomes_whiteouts(tmp_path: Path) -> None:
    found = lower(tmp_path / "low", {"d/a": "", "d/b/c": "", "d/e/f": "", "d/e/g": ""})
    upper = tmp_path / "upper"
    (upper / "d/e").mkdir(parents=True)
    (upper / "d/a").write_text("new")
    (upper / "d/e/f").write_text("new")
    os.setxattr(upper / "d", "user.overlay.opaque", b"y")
    normalise(str(upper), found)
    assert whiteouts(upper) == {"d/b", "d/e/g"}
    assert os.listxattr(upper / "d") == []


@pytest.mark.parametrize("name", [".wh.b", ".wh..wh..opq", "d/.wh.c", ".wh.d/file"])
def test_names_that_other_overlays_take_for_marks_are_refused(tmp_path: Path, name: str) -> None:
    found = lower(tmp_path / "low", {"d/a": "", "x/.wh.kept": ""})
    new = tmp_path / "upper" / name
    new.parent.mkdir(parents=True)
    new.write_text("a file of the user's")
    with pytest.raises(CannotNormalise, match=r"\.wh\."):
        normalise(str(tmp_path / "upper"), found)


def test_whiteouts_of_nothing_and_of_marks_are_removed(tmp_path: Path) -> None:
    found = lower(tmp_path / "low", {".singularity.d/ctk-layer-0": "", "a": ""})
    upper = tmp_path / "upper"
    (upper / ".singularity.d").mkdir(parents=True)
    for name in ("a", "absent", ".singularity.d/ctk-layer-0"):
        os.mknod(upper / name, 0o020000, os.makedev(0, 0))
    normalise(str(upper), found)
    assert whiteouts(upper) == {"a"}


def test_touched_hard_links_are_remembered(tmp_path: Path) -> None:
    (tmp_path / "low/0/d").mkdir(parents=True)
    (tmp_path / "low/0/d/one").write_text("x")
    (tmp_path / "low/0/two").hardlink_to(tmp_path / "low/0/d/one")
    found = lower(tmp_path / "low", {})
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / "d").write_text("a file in place of the directory")
    changes = normalise(str(upper), found)
    assert isinstance(changes, Changes)
    assert list(changes.touched.values()) == [{"d/one"}]


def test_private_attributes_of_every_overlay_go_and_others_stay(tmp_path: Path) -> None:
    found = lower(tmp_path / "low", {})
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / "f").write_text("")
    for name in ("user.fuseoverlayfs.origin", "user.overlay.impure", "user.color"):
        os.setxattr(upper / "f", name, b"1")
    normalise(str(upper), found)
    assert os.listxattr(upper / "f") == ["user.color"]
