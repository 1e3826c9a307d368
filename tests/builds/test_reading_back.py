"""A new image that is damaged is refused, whatever the runtime says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import small_sif
from toolkit.builds.reading_back import require_readable
from toolkit.inventory.formats.images import mounted_partitions
from toolkit.inventory.formats.sif import read_sif
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path


def test_a_whole_image_is_read_with_its_bytes(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    require_readable(small_sif(tmp_path), "the image", cores=1, on_progress=lambda *sizes: seen.append(sizes))
    assert seen
    assert seen[-1][0] == seen[-1][1] > 0


def test_a_damaged_block_is_refused(tmp_path: Path) -> None:
    image = small_sif(tmp_path)
    start = mounted_partitions(read_sif(image))[0].offset
    content = bytearray(image.read_bytes())
    content[start + 96 : start + 104] = b"\xff" * 8  # behind the superblock is the first block of data
    image.write_bytes(content)
    with pytest.raises(ProgramFailed, match=r"^the image was damaged when it was packed: ") as caught:
        require_readable(image, "the image")
    assert caught.value.code == "image-damaged"
    assert "another version of the container runtime" in str(caught.value.fix)


def test_a_format_that_only_the_runtime_reads_is_left_to_it(tmp_path: Path) -> None:
    """An ext3 image, as very old ones are."""
    image = tmp_path / "x.img"
    image.write_bytes(bytes(0x438) + b"\x53\xef" + bytes(4000))
    require_readable(image, "the image")
