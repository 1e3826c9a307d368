"""What is seen below a layer: as the kernel's overlayfs shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.builds.layers.trees import lower

if TYPE_CHECKING:
    from pathlib import Path


def test_upper_hides_lower_and_directories_are_merged(tmp_path: Path) -> None:
    found = lower(tmp_path, {"d/a": "1", "d/b": "1", "x/y": ""}, {"d/b": "2", "x": "file"})
    seen = found.find("d/b")
    assert seen is not None
    assert b"".join(found.read(seen)) == b"2"
    assert set(found.children(found.root)) == {"d", "etc", "x"}
    assert found.find("d/a") is not None
    assert found.find("x/y") is None
    assert found.find("d/a/b") is None


def test_whiteout_hides_and_names_of_other_marks_are_files(tmp_path: Path) -> None:
    base = {"d/a": "1", "d/.wh.b": "", "d/b": "1", "d/.wh..wh..opq": ""}
    found = lower(tmp_path, base, {"d/c": "2", "d/.wh.c": ""}, pseudo="d/a c 000 0 0 0 0")
    directory = found.find("d")
    assert directory is not None
    assert set(found.children(directory)) == {".wh.b", "b", ".wh..wh..opq", "c", ".wh.c"}


def test_hard_links_have_one_key(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0/one").write_text("x")
    (tmp_path / "0/two").hardlink_to(tmp_path / "0/one")
    found = lower(tmp_path, {"other": "x"})
    one, two, other = (found.find(name) for name in ("one", "two", "other"))
    assert one is not None
    assert two is not None
    assert other is not None
    assert one.key == two.key != other.key
    assert found.links(one.key) == found.status(two).links == 2
    assert sorted(path for path, _ in found.files(found.root, "")) == ["one", "other", "two"]
