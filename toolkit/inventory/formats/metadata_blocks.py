"""Squashfs metadata: a chain of compressed blocks of 8 KiB, read as one stream of bytes.

Source of the format: squashfs-tools-ng, doc/format.adoc, sections 2.2 and 2.3.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING

from toolkit.inventory.formats.tree import corrupt

if TYPE_CHECKING:
    from collections.abc import Callable

METADATA_SIZE = 8192
_RAW = 0x8000
_LARGEST_TABLE = 512 << 20  # bytes: real images have some ten MiB, and a few MiB may claim gigabytes
_KEPT = 512  # 4 MiB: the directories and inodes that an inventory visits


class ImageFile:
    """The bytes of one squashfs within a larger file: positions count from where the squashfs starts."""

    def __init__(self, label: str, descriptor: int, offset: int, size: int) -> None:
        self.label = label
        self.size = size
        self._descriptor = descriptor
        self._offset = offset

    def read(self, position: int, length: int) -> bytes:
        """Exactly `length` bytes. Raises WrongInput if they are not all there."""
        if position < 0 or length < 0 or position + length > self.size:
            raise corrupt(
                self.label, f"it refers to bytes {position} to {position + length}, but has {self.size} bytes"
            )
        data = os.pread(self._descriptor, length, self._offset + position)
        if len(data) < length:
            raise corrupt(self.label, "it is truncated")
        return data

    def close(self) -> None:
        os.close(self._descriptor)


class MetadataBlocks:
    """The decompressed metadata blocks of a squashfs, the last used of them kept."""

    def __init__(self, file: ImageFile, decompress: Callable[[bytes, int], bytes]) -> None:
        self._file = file
        self._decompress = decompress
        self._kept: OrderedDict[int, tuple[bytes, int]] = OrderedDict()

    def block(self, position: int) -> tuple[bytes, int]:
        """The content of the block at `position`, and the position of the one behind it."""
        if position in self._kept:
            self._kept.move_to_end(position)
            return self._kept[position]
        header = int.from_bytes(self._file.read(position, 2), "little")
        length = header & ~_RAW
        if not 0 < length <= METADATA_SIZE:
            raise corrupt(self._file.label, f"the metadata block at {position} claims {length} bytes")
        content = self._file.read(position + 2, length)
        if not header & _RAW:
            content = self.decompressed(content, METADATA_SIZE)
        found = content, position + 2 + length
        self._kept[position] = found
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found

    def stream(self, start: int, end: int) -> bytes:
        """The content of all blocks from `start` to `end`, which are a table."""
        parts, size = [], 0
        while start < end:
            content, start = self.block(start)
            parts.append(content)
            size += len(content)
            if size > _LARGEST_TABLE:
                raise corrupt(self._file.label, f"a table has more than {_LARGEST_TABLE} bytes")
        if start != end:
            raise corrupt(self._file.label, "a metadata block goes beyond its table")
        return b"".join(parts)

    def decompressed(self, data: bytes, limit: int) -> bytes:
        """`data` decompressed, at most `limit` bytes of it."""
        try:
            return self._decompress(data, limit)
        except ValueError as error:
            raise corrupt(self._file.label, f"a block cannot be decompressed ({error})") from error

    def cursor(self, position: int, offset: int) -> MetadataCursor:
        """A reader that begins `offset` bytes into the block at `position`."""
        return MetadataCursor(self, position, offset, self._file.label)


class MetadataCursor:
    """Reads on through metadata blocks."""

    def __init__(self, blocks: MetadataBlocks, position: int, offset: int, label: str) -> None:
        self._blocks = blocks
        self._label = label
        self._content, self._next = blocks.block(position)
        self._offset = offset

    def read(self, length: int) -> bytes:
        """The next `length` bytes."""
        end = self._offset + length
        if end <= len(self._content):
            found = self._content[self._offset : end]
            self._offset = end
            return found
        parts = [self._content[self._offset :]]
        missing = length - len(parts[0])
        while missing > 0:
            self._content, self._next = self._blocks.block(self._next)
            if not self._content:
                raise corrupt(self._label, "a metadata block is empty")
            parts.append(self._content[:missing])
            missing -= len(parts[-1])
        self._offset = len(parts[-1])
        return b"".join(parts)
