"""The extended attributes of a squashfs, and those that an overlay puts on a directory which hides the one below it.

Source of the format: squashfs-tools-ng, doc/format.adoc, section 10. Sources of the marks: Linux,
Documentation/filesystems/overlayfs.rst; fuse-overlayfs, main.c.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from toolkit.inventory.formats.metadata_blocks import METADATA_SIZE
from toolkit.inventory.formats.tree import corrupt

if TYPE_CHECKING:
    from toolkit.inventory.formats.metadata_blocks import ImageFile, MetadataBlocks, MetadataCursor

_OUT_OF_LINE = 0x100
_MAX_PAIRS = 256
_LONGEST_VALUE = 1 << 16
_PREFIXES = {0: "user.", 1: "trusted.", 2: "security."}
OPAQUE = {"trusted.overlay.opaque", "user.overlay.opaque", "user.fuseoverlayfs.opaque"}
_ENTRY = struct.Struct("<QII")
_ENTRIES_A_BLOCK = METADATA_SIZE // _ENTRY.size


def says_opaque(file: ImageFile, metadata: MetadataBlocks, table: int, number: int) -> bool:
    """Whether the attributes with index `number` in the table at `table` mark a directory as opaque."""
    found = attributes(file, metadata, table, number)
    return any(found.get(name) == b"y" for name in OPAQUE)


def attributes(file: ImageFile, metadata: MetadataBlocks, table: int, number: int) -> dict[str, bytes]:
    """The attributes with index `number` in the table at `table`: name with its prefix, and value."""
    start, count, _ = struct.unpack("<QII", file.read(table, 16))
    if number >= count:
        raise corrupt(file.label, f"it refers to attribute {number}, but has {count}")
    index, rest = divmod(number, _ENTRIES_A_BLOCK)
    position = int.from_bytes(file.read(table + 16 + 8 * index, 8), "little")
    reference, pairs, _ = _ENTRY.unpack(metadata.cursor(position, rest * _ENTRY.size).read(_ENTRY.size))
    cursor = metadata.cursor(start + (reference >> 16), reference & 0xFFFF)
    found = {}
    for _ in range(min(pairs, _MAX_PAIRS)):
        kind, length = struct.unpack("<HH", cursor.read(4))
        name = _PREFIXES.get(kind & 0xFF, "") + os.fsdecode(cursor.read(length))
        value = _value(file, cursor)
        if kind & _OUT_OF_LINE:
            elsewhere = int.from_bytes(value, "little")
            value = _value(file, metadata.cursor(start + (elsewhere >> 16), elsewhere & 0xFFFF))
        found[name] = value
    return found


def _value(file: ImageFile, cursor: MetadataCursor) -> bytes:
    (size,) = struct.unpack("<I", cursor.read(4))
    if size > _LONGEST_VALUE:
        raise corrupt(file.label, f"an attribute is {size} bytes long")
    return cursor.read(size)
