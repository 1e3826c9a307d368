"""How a layer is packed, and what is said where it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.builds.layers import pack as pack_module
from toolkit.builds.layers.pack import find_mksquashfs, pack, packing_arguments
from toolkit.builds.room import Disk, RoomWatch
from toolkit.support import programs
from toolkit.support.errors import MissingOnHost, ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path


def test_packing_follows_compression_and_cores() -> None:
    assert packing_arguments("zstd", None) == ["-comp", "zstd", "-Xcompression-level", "2"]
    assert packing_arguments("gzip", 2) == ["-comp", "gzip", "-processors", "2"]
    assert packing_arguments("gzip", None, 4 << 30) == ["-comp", "gzip", "-mem", "4096M"]


def test_missing_mksquashfs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "_MORE_PLACES", ("/nowhere/else",))
    with pytest.raises(MissingOnHost, match="there is no mksquashfs") as caught:
        find_mksquashfs()
    assert caught.value.code == "no-mksquashfs"


def test_failed_packing_shows_the_last_lines(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed) as caught:
        pack(tmp_path / "absent", tmp_path / "out.sqfs", "zstd", 1)
    assert any("absent" in line for line in caught.value.last_lines)


@pytest.mark.parametrize("reason", ["No space left on device", "Disk quota exceeded"])
def test_disk_that_is_full_while_a_layer_is_packed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    program = tmp_path / "mksquashfs"
    program.write_text(
        f"#!/bin/sh\necho 'Write failed because {reason}'\necho 'FATAL ERROR: Failed to write'\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(pack_module, "find_mksquashfs", lambda: str(program))
    room = RoomWatch([Disk(tmp_path, "the build", "Set CTK_HOME.")])
    with (
        pytest.raises(ProgramFailed, match=r"^the build stopped: a disk or a quota is full") as caught,
        room.watching(),
    ):
        pack(tmp_path, tmp_path / "out.sqfs", "zstd", 1)
    assert caught.value.code == "disk-full"
    assert "Set CTK_HOME." in str(caught.value.fix)
