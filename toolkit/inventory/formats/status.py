"""What an inode of a squashfs says beyond its content: mode, owner, links, extended attributes.

Source of the format: squashfs-tools-ng, doc/format.adoc, sections 4 and 9.
"""

from __future__ import annotations

import stat
import struct
from typing import TYPE_CHECKING, NamedTuple

from toolkit.inventory.formats.metadata_blocks import METADATA_SIZE
from toolkit.inventory.formats.tree import corrupt
from toolkit.inventory.formats.xattrs import attributes

if TYPE_CHECKING:
    from toolkit.inventory.formats.metadata_blocks import ImageFile, MetadataBlocks, MetadataCursor

_HEADER = struct.Struct("<HHHHII")
_IDS_A_BLOCK = METADATA_SIZE // 4
_NONE32, _NONE64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_EXTENDED = 7
_TYPES = dict(
    enumerate(
        (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK, stat.S_IFBLK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK), start=1
    )
)


class Status(NamedTuple):
    """As os.lstat says it: `mode` with the type, `modified` in seconds; `attributes` are the extended ones."""

    mode: int
    uid: int
    gid: int
    links: int
    modified: int
    attributes: dict[str, bytes]


def read_status(file: ImageFile, metadata: MetadataBlocks, cursor: MetadataCursor, ids: int, xattrs: int) -> Status:
    """The status from the inode at `cursor`; `ids` and `xattrs` are the positions of these tables."""
    type_, permissions, uid, gid, modified, _ = _HEADER.unpack(cursor.read(_HEADER.size))
    links, number = _links_and_attributes(type_, cursor)
    kind = _TYPES.get(type_ if type_ <= _EXTENDED else type_ - _EXTENDED)
    if kind is None:
        raise corrupt(file.label, f"an inode has type {type_}")
    found = {} if number == _NONE32 or xattrs == _NONE64 else attributes(file, metadata, xattrs, number)
    owner, group = (_id(file, metadata, ids, index) for index in (uid, gid))
    return Status(kind | permissions, owner, group, links, modified, found)


def _links_and_attributes(type_: int, cursor: MetadataCursor) -> tuple[int, int]:
    """The number of links and that of the extended attributes, from the part of an inode that its type decides."""
    if type_ == 1:
        return struct.unpack_from("<I", cursor.read(8), 4)[0], _NONE32
    if type_ == 2:
        return 1, _NONE32
    if type_ in (3, 4, 5, 6, 7):
        return struct.unpack("<I", cursor.read(4))[0], _NONE32
    if type_ == 8:
        links, *_, number = struct.unpack("<IIIIHHI", cursor.read(24))
        return links, number
    if type_ == 9:
        _, _, _, links, _, _, number = struct.unpack("<QQQIIII", cursor.read(40))
        return links, number
    if type_ == 10:
        links, length = struct.unpack("<II", cursor.read(8))
        cursor.read(length)
        return links, struct.unpack("<I", cursor.read(4))[0]
    if type_ in (13, 14):
        links, number = struct.unpack("<II", cursor.read(8))
    else:
        links, _, number = struct.unpack("<III", cursor.read(12))
    return links, number


def _id(file: ImageFile, metadata: MetadataBlocks, table: int, index: int) -> int:
    block, rest = divmod(index, _IDS_A_BLOCK)
    position = int.from_bytes(file.read(table + 8 * block, 8), "little")
    return int.from_bytes(metadata.cursor(position, rest * 4).read(4), "little")
