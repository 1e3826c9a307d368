"""Metadata blocks of a squashfs: read across their ends, bounded, and refused where they are damaged."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

import pytest

from toolkit.inventory.formats.metadata_blocks import METADATA_SIZE, ImageFile, MetadataBlocks
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BEFORE = b"header"  # what stands in the file before the squashfs


def inflate(data: bytes, limit: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def block(content: bytes, *, raw: bool = False) -> bytes:
    data = content if raw else zlib.compress(content)
    return (len(data) | (0x8000 if raw else 0)).to_bytes(2, "little") + data


@pytest.fixture
def blocks_of(tmp_path: Path) -> Iterator[Callable[[bytes], MetadataBlocks]]:
    opened: list[ImageFile] = []

    def make(content: bytes) -> MetadataBlocks:
        path = tmp_path / "x.sif"
        path.write_bytes(BEFORE + content)
        opened.append(ImageFile("x.sif", os.open(path, os.O_RDONLY), len(BEFORE), len(content)))
        return MetadataBlocks(opened[-1], inflate)

    yield make
    for file in opened:
        file.close()


def test_a_cursor_reads_on_through_blocks_of_either_kind(blocks_of: Callable[[bytes], MetadataBlocks]) -> None:
    first, second = block(b"abcdef"), block(b"ghi", raw=True)
    blocks = blocks_of(first + second + block(b"jkl"))
    assert blocks.block(0) == (b"abcdef", len(first))
    cursor = blocks.cursor(0, 4)
    assert [cursor.read(length) for length in (1, 3, 0, 4)] == [b"e", b"fgh", b"", b"ijkl"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x00", "claims 0 bytes"),
        ((METADATA_SIZE + 1).to_bytes(2, "little") + bytes(METADATA_SIZE + 1), f"claims {METADATA_SIZE + 1} bytes"),
        (block(b"abc")[:-1], r"refers to bytes 2 to \d+, but has \d+ bytes"),
        (b"\x03\x00abc", "cannot be decompressed"),
        (b"\x05", "refers to bytes 0 to 2, but has 1 bytes"),
    ],
)
def test_a_damaged_block_is_refused(blocks_of: Callable[[bytes], MetadataBlocks], content: bytes, message: str) -> None:
    with pytest.raises(WrongInput, match=message) as caught:
        blocks_of(content).block(0)
    assert caught.value.code == "corrupt-image"


def test_a_file_that_became_shorter_is_truncated(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    file = ImageFile("x", os.open(tmp_path / "x", os.O_RDONLY), 0, 10)
    with pytest.raises(WrongInput, match="truncated"):
        file.read(0, 10)
    file.close()


def test_no_block_gives_more_than_its_size(blocks_of: Callable[[bytes], MetadataBlocks]) -> None:
    content, _ = blocks_of(block(bytes(10 * METADATA_SIZE))).block(0)
    assert len(content) == METADATA_SIZE
