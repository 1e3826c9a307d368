"""The hash of a layer: of the content, never of the time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from toolkit.builds.layers.digest import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def tree(top: Path) -> Path:
    (top / "d").mkdir(parents=True)
    (top / "d/file").write_text("text")
    (top / os.fsdecode(b"\xff\n")).write_text("odd")
    (top / "link").symlink_to("d/file")
    return top


def test_digest_is_the_same_for_the_same_tree_at_another_time(tmp_path: Path) -> None:
    first, second = tree(tmp_path / "a"), tree(tmp_path / "b")
    os.utime(second / "d/file", (1, 1))
    os.setxattr(second / "d", "user.overlay.impure", b"y")
    assert digest_of(str(first)) == digest_of(str(second))
    assert len(digest_of(str(first))) == 32


@pytest.mark.parametrize(
    "change",
    [
        lambda top: (top / "d/file").chmod(0o600),
        lambda top: (top / "d/file").write_text("texT"),
        lambda top: (top / "new").write_text(""),
        lambda top: os.setxattr(top / "d", "user.color", b"red"),
        lambda top: ((top / "link").unlink(), (top / "link").symlink_to("d")),
        lambda top: (top / "d/file").rename(top / "d/file2"),
        lambda top: os.mkfifo(top / "pipe"),
    ],
)
def test_digest_changes_with_the_tree(tmp_path: Path, change: Callable[[Path], object]) -> None:
    top = tree(tmp_path / "a")
    before = digest_of(str(top))
    change(top)
    assert digest_of(str(top)) != before


def test_digest_tells_a_hard_link_from_a_copy(tmp_path: Path) -> None:
    linked, copied = tree(tmp_path / "a"), tree(tmp_path / "b")
    (linked / "second").hardlink_to(linked / "d/file")
    (copied / "second").write_text("text")
    assert digest_of(str(linked)) != digest_of(str(copied))
