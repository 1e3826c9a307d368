"""The inode table of a squashfs, made by hand: every type is stepped over, and damage is named."""

from __future__ import annotations

import struct

import pytest

from toolkit.inventory.formats.inodes import FileInode, file_inodes
from toolkit.support.errors import WrongInput

NONE = 0xFFFFFFFF
BLOCK = 4096


def inode(type_: int, body: bytes) -> bytes:
    return struct.pack("<HHHHII", type_, 0o644, 0, 0, 0, 1) + body


FILE = inode(2, struct.pack("<IIII", 96, NONE, 0, 2 * BLOCK + 5) + struct.pack("<3I", 10, 0, 7))
TAIL = inode(2, struct.pack("<IIII", 96, 4, 100, BLOCK + 5) + struct.pack("<I", 10))
SPARSE = inode(9, struct.pack("<QQQIIII", 200, 3 * BLOCK, 2 * BLOCK, 2, NONE, 0, NONE) + struct.pack("<3I", 0, 9, 0))
OTHERS = [
    inode(1, bytes(16)),
    inode(3, struct.pack("<II", 1, 6) + b"target"),
    inode(10, struct.pack("<II", 1, 6) + b"target" + bytes(4)),
    inode(8, struct.pack("<IIIIHHI", 1, 3, 0, 1, 1, 0, NONE) + struct.pack("<III", 0, 0, 3) + b"name"),
    *(
        inode(type_, bytes(size))
        for type_, size in ((4, 8), (5, 8), (6, 4), (7, 4), (11, 12), (12, 12), (13, 8), (14, 8))
    ),
]
TABLE = b"".join([FILE, *OTHERS, TAIL, SPARSE])
COUNT = len(OTHERS) + 3


def test_files_are_found_among_all_other_inodes() -> None:
    assert list(file_inodes(TABLE, BLOCK, COUNT, "x")) == [
        FileInode(2 * BLOCK + 5, 96, NONE, 0, (10, 0, 7), 0),
        FileInode(BLOCK + 5, 96, 4, 100, (10,), 0),
        FileInode(3 * BLOCK, 200, NONE, 0, (0, 9, 0), 2 * BLOCK),
    ]


@pytest.mark.parametrize(
    ("table", "count", "message"),
    [
        (TABLE, COUNT - 1, f"it has {COUNT} inodes; expected {COUNT - 1}"),
        (TABLE[:-4], COUNT, f"inode {COUNT} is damaged"),
        (inode(15, bytes(40)), 1, "inode 1 is damaged"),
        (inode(9, struct.pack("<QQQIIII", 0, 1 << 60, 0, 1, NONE, 0, NONE)), 1, "inode 1 is damaged"),
        (inode(3, struct.pack("<II", 1, 99)), 1, "expected 1"),
    ],
)
def test_damage_is_named(table: bytes, count: int, message: str) -> None:
    with pytest.raises(WrongInput, match=message):
        list(file_inodes(table, BLOCK, count, "x"))
