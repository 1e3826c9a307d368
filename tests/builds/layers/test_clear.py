"""What a layer hides or replaces is removed before the layer is unpacked over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.builds.layers.clear import clear

if TYPE_CHECKING:
    from pathlib import Path


def test_clear_removes_what_is_hidden_or_of_another_type(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "kept" / "below").mkdir(parents=True)
    (tree / "gone" / "below").mkdir(parents=True)
    (tree / "file").write_text("x")
    outside.mkdir()
    (outside / "mine").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "kept" / "\udcff").write_text("x")
    clear(tree, b"dkept\0xkept/\xff\0xgone\0dlink\0xlink/mine\0dfile\0xfile/below\0xnowhere/at/all\0")
    assert sorted(str(path.relative_to(tree)) for path in tree.rglob("*")) == ["kept", "kept/below"]
    assert (outside / "mine").exists()
