"""How a layer is packed, and what is said where it cannot be."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from toolkit.builds.layers import pack as pack_module
from toolkit.builds.layers.pack import find_mksquashfs, pack, packing_arguments, percent_of
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


@pytest.mark.parametrize(
    ("line", "percent"),
    [
        ("[===============================-                             ]  1542/2889  53%", 53),
        ("[|                                                           ]    0/2889   0%", 0),
        ("[==================================================================\\] 1/1 100%", 100),
        ("[===] 1/2 50% of a file name", None),
        ("FATAL ERROR: Failed to write", None),
        ("", None),
    ],
)
def test_progress_bar_is_read(line: str, percent: int | None) -> None:
    assert percent_of(line) == percent


def test_real_percentages_of_mksquashfs(tmp_path: Path) -> None:
    """Random data in 768 blocks, which take about two seconds: mksquashfs shows a state four times a second."""
    (tmp_path / "data").mkdir()
    block = random.Random(5).randbytes(1 << 20)  # noqa: S311
    with (tmp_path / "data/large").open("wb") as file:
        for number in range(96):
            file.write(number.to_bytes(4, "big") + block[4:])
    seen: list[tuple[int, int]] = []
    pack(tmp_path / "data", tmp_path / "out.sqfs", "gzip", 1, on_progress=lambda *state: seen.append(state))
    assert (tmp_path / "out.sqfs").stat().st_size > 96 << 19
    percents = [percent for percent, total in seen if total == 100]
    assert len(percents) == len(seen)
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert len({percent for percent in percents if 0 < percent < 100}) >= 2


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
