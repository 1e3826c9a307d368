"""Files written into the upper directory of a step, whatever a script left there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from toolkit.builds.layers.normalise import CannotNormalise
from toolkit.builds.layers.upper import UpperWriter

if TYPE_CHECKING:
    from pathlib import Path

PATH = "/.singularity.d/env/90-environment.sh"


def test_writer_makes_directories_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        UpperWriter(str(tmp_path)).write(PATH, b"x", 0o755)
    finally:
        os.umask(before)
    written = tmp_path / PATH[1:]
    assert written.read_bytes() == b"x"
    assert [path.stat().st_mode & 0o777 for path in (written, written.parent)] == [0o755, 0o755]


def test_writer_replaces_a_symlink_and_never_follows_it(tmp_path: Path) -> None:
    upper, outside = tmp_path / "upper", tmp_path / "outside"
    (upper / ".singularity.d").mkdir(parents=True)
    outside.write_text("mine")
    (upper / ".singularity.d/labels.json").symlink_to(outside)
    UpperWriter(str(upper)).write("/.singularity.d/labels.json", b"{}", 0o644)
    assert outside.read_text() == "mine"
    assert (upper / ".singularity.d/labels.json").read_text() == "{}"


@pytest.mark.parametrize("in_the_way", ["symlink", "file", "directory"])
def test_writer_refuses_what_is_in_the_way(tmp_path: Path, in_the_way: str) -> None:
    upper, outside = tmp_path / "upper", tmp_path / "outside"
    upper.mkdir()
    outside.mkdir()
    if in_the_way == "symlink":
        (upper / ".singularity.d").symlink_to(outside)
    elif in_the_way == "file":
        (upper / ".singularity.d").write_text("")
    else:
        (upper / PATH[1:]).mkdir(parents=True)
    with pytest.raises(CannotNormalise, match="cannot be replaced"):
        UpperWriter(str(upper)).write(PATH, b"x", 0o755)
    assert not list(outside.iterdir())


def test_removed_file_may_be_missing(tmp_path: Path) -> None:
    writer = UpperWriter(str(tmp_path))
    writer.write("/.build.labels", b"a b\n", 0o644)
    writer.remove("/.build.labels")
    writer.remove("/.build.labels")
    assert not list(tmp_path.iterdir())
