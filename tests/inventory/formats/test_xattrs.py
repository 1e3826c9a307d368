"""The extended attributes by which a layer marks a directory as opaque."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest

from toolkit.inventory.formats.metadata_blocks import ImageFile, MetadataBlocks
from toolkit.inventory.formats.xattrs import says_opaque
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

USER, TRUSTED = 0, 1


def attribute(kind: int, name: bytes, value: bytes, size: int | None = None) -> bytes:
    header = struct.pack("<HH", kind, len(name)) + name
    return header + struct.pack("<I", len(value) if size is None else size) + value


def opaque(tmp_path: Path, *attributes: bytes, number: int = 0) -> bool:
    """Whether a directory with these attributes is opaque. The values, their index and its table, one after another."""
    content = b"".join(attributes)
    values = struct.pack("<H", len(content) | 0x8000) + content
    entry = struct.pack("<QII", 0, len(attributes), len(content))
    index = struct.pack("<H", len(entry) | 0x8000) + entry
    table = struct.pack("<QII", 0, 1, 0) + struct.pack("<Q", len(values))
    path = tmp_path / "x"
    path.write_bytes(values + index + table)
    file = ImageFile("x", os.open(path, os.O_RDONLY), 0, path.stat().st_size)
    try:
        return says_opaque(file, MetadataBlocks(file, lambda data, _limit: data), len(values) + len(index), number)
    finally:
        file.close()


@pytest.mark.parametrize(
    ("kind", "name", "value", "expected"),
    [
        (TRUSTED, b"overlay.opaque", b"y", True),
        (USER, b"overlay.opaque", b"y", True),
        (USER, b"fuseoverlayfs.opaque", b"y", True),
        (TRUSTED, b"overlay.opaque", b"n", False),
        (TRUSTED, b"fuseoverlayfs.opaque", b"y", False),
        (USER, b"overlay.origin", b"y", False),
        (TRUSTED | 0x100, b"overlay.opaque", b"y", False),
    ],
)
def test_each_mark_of_an_overlay_counts_and_no_other(
    tmp_path: Path, kind: int, name: bytes, value: bytes, expected: bool
) -> None:
    assert opaque(tmp_path, attribute(USER, b"comment", b"y"), attribute(kind, name, value)) is expected


def test_a_number_or_a_size_beyond_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="refers to attribute 1, but has 1"):
        opaque(tmp_path, attribute(USER, b"a", b"b"), number=1)
    with pytest.raises(WrongInput, match="70000 bytes long"):
        opaque(tmp_path, attribute(USER, b"a", b"b", size=70_000))
