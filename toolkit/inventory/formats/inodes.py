"""The inode table of a squashfs: what it says of each file.

Source of the format: squashfs-tools-ng, doc/format.adoc, section 2.4.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from toolkit.inventory.formats.tree import corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

_NONE32 = 0xFFFFFFFF
# Bytes of an inode after its header of 16, without what is variable: types 1 to 14 of the format.
_FIXED = {1: 16, 2: 16, 3: 8, 4: 8, 5: 8, 6: 4, 7: 4, 8: 24, 9: 40, 10: 8, 11: 12, 12: 12, 13: 8, 14: 8}
_HEADER = 16
_DIRECTORY_INDEX = struct.Struct("<III")


class FileInode(NamedTuple):
    """A file: its size, the position of its first block, its fragment and the place there, its blocks' sizes.

    A block of size 0 has only zeros. `sparse` is how many bytes of the file were holes when it was packed.
    """

    size: int
    start: int
    fragment: int
    offset: int
    blocks: tuple[int, ...]
    sparse: int


def file_inodes(table: bytes, block_size: int, count: int, label: str) -> Iterator[FileInode]:
    """The files of an inode table, which has `count` inodes. Raises WrongInput if it is damaged; `label` names it."""
    at = found = 0
    try:
        while at < len(table):
            (type_,) = struct.unpack_from("<H", table, at)
            at += _HEADER
            body, at = at, at + _FIXED[type_]
            if type_ in (2, 9):
                sparse = 0
                if type_ == 2:
                    start, fragment, offset, size = struct.unpack_from("<IIII", table, body)
                else:
                    start, size, sparse, _, fragment, offset, _ = struct.unpack_from("<QQQIIII", table, body)
                number = size // block_size if fragment != _NONE32 else -(-size // block_size)
                yield FileInode(size, start, fragment, offset, struct.unpack_from(f"<{number}I", table, at), sparse)
                at += 4 * number
            elif type_ in (3, 10):
                (length,) = struct.unpack_from("<I", table, body + 4)
                at += length + (4 if type_ == 10 else 0)
            elif type_ == 8:
                (indexes,) = struct.unpack_from("<H", table, body + 16)
                for _ in range(indexes):
                    at += _DIRECTORY_INDEX.size + 1 + _DIRECTORY_INDEX.unpack_from(table, at)[2]
            found += 1
    except (struct.error, KeyError, OverflowError, MemoryError) as error:
        raise corrupt(label, f"inode {found + 1} is damaged") from error
    if at != len(table) or found != count:
        raise corrupt(label, f"it has {found} inodes; expected {count}")
