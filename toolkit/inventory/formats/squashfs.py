"""A squashfs 4.0 read at random: only the directories and the blocks that are asked for, never the whole tree.

Source of the format: squashfs-tools-ng, doc/format.adoc. The one library on PyPI under a free enough licence,
PySquashfsImage 0.9.0, reads every inode of the image when it opens it, into one object each, and follows any number
that it finds there; an audit should read only what it needs, and an image may be hostile.
"""

from __future__ import annotations

import io
import os
import struct
from functools import lru_cache
from itertools import accumulate
from typing import IO, TYPE_CHECKING, NamedTuple

from toolkit.inventory.formats.compression import DECOMPRESSORS
from toolkit.inventory.formats.inodes import FileInode, file_inodes
from toolkit.inventory.formats.metadata_blocks import METADATA_SIZE, ImageFile, MetadataBlocks, MetadataCursor
from toolkit.inventory.formats.tree import EntryKind, corrupt
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolkit.inventory.formats.status import Status

MAGIC = b"hsqs"
# magic, inodes, modified, block size, fragments, compressor, block log, flags, ids, major, minor,
# root inode, bytes used, id table, xattr table, inode table, directory table, fragment table, export table
_SUPERBLOCK = struct.Struct("<4s4I6H8Q")
_INODE = struct.Struct("<HHHHII")
_NONE32, _NONE64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_RAW_DATA = 1 << 24
_FRAGMENT = struct.Struct("<QII")
_FRAGMENTS_A_BLOCK = METADATA_SIZE // _FRAGMENT.size

_DIRECTORY, _FILE, _SYMLINK, _CHARACTER = 1, 2, 3, 5
_EXTENDED = 7  # an extended inode's type is its basic type plus this
_KINDS = {_DIRECTORY: EntryKind.DIRECTORY, _FILE: EntryKind.FILE, _SYMLINK: EntryKind.SYMLINK}

# Real images stay far below these limits; an image that exceeds them is an attack.
_MAX_ENTRIES = 500_000  # in one directory
_MAX_LISTED = 2_000_000  # in all directories that were listed
_MAX_BLOCKS = 1 << 21  # of one file: 256 GiB at the usual 128 KiB
_LONGEST_TARGET = 4096


class SquashEntry(NamedTuple):
    """A name in a directory: its kind, and where its inode is (block position << 16 | offset)."""

    kind: EntryKind
    reference: int


class _File(NamedTuple):
    """What an inode says of a file: `start` of its first block, and its tail's place in a fragment."""

    size: int
    start: int
    fragment: int
    fragment_offset: int
    blocks: tuple[int, ...]


class Squashfs:
    """A squashfs that starts `offset` bytes into the file at `path` and is at most `size` bytes long."""

    def __init__(self, path: os.PathLike[str], offset: int = 0, size: int | None = None) -> None:
        self.label = os.fspath(path)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise WrongInput(f"cannot read {self.label}: {error.strerror}") from error
        file_size = os.fstat(descriptor).st_size - offset
        self._file = ImageFile(self.label, descriptor, offset, file_size if size is None else min(size, file_size))
        try:
            self._read_superblock()
        except BaseException:
            self._file.close()
            raise
        self._listed = 0
        self._above: dict[int, int] = {}  # the directory that a directory is in
        self._directory = lru_cache(maxsize=512)(self._list)
        self._block = lru_cache(maxsize=24)(self._read_block)  # at most 24 MiB, at the usual block size 3 MiB

    def _read_superblock(self) -> None:
        fields = _SUPERBLOCK.unpack(self._file.read(0, _SUPERBLOCK.size))
        magic, _, _, self._block_size, self._fragments, compressor, block_log = fields[:7]
        self.inode_count: int = fields[1]  # of files, directories and all else
        self.block_size: int = fields[3]
        major, minor, self._root, used = fields[9:13]
        self._ids = fields[13]
        self._xattr_table, self._inode_table, self._directory_table, self._fragment_table = fields[14:18]
        if magic != MAGIC:
            raise corrupt(self.label, "the squashfs magic number is missing")
        if (major, minor) != (4, 0):
            raise WrongInput(f"{self.label} is a squashfs {major}.{minor}; ctk reads 4.0", code="foreign-image")
        if compressor not in DECOMPRESSORS:
            raise WrongInput(f"{self.label}: unknown compressor number {compressor}", code="foreign-image")
        if not 12 <= block_log <= 20 or self._block_size != 1 << block_log:
            raise corrupt(self.label, f"invalid block size {self._block_size}")
        if used > self._file.size:
            raise corrupt(self.label, f"its file system should have {used} bytes, but only {self._file.size} are there")
        self._metadata = MetadataBlocks(self._file, DECOMPRESSORS[compressor])

    @property
    def root(self) -> SquashEntry:
        """The entry of the topmost directory."""
        return SquashEntry(EntryKind.DIRECTORY, self._root)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def children(self, directory: SquashEntry) -> Mapping[str, SquashEntry]:
        """The entries of a directory by name."""
        return self._directory(directory.reference)

    def target(self, symlink: SquashEntry) -> str:
        """The target of a symlink."""
        _, cursor = self._inode(symlink.reference, _SYMLINK)
        _, length = struct.unpack("<II", cursor.read(8))
        if length > _LONGEST_TARGET:
            raise corrupt(self.label, f"a symlink is {length} bytes long")
        return os.fsdecode(cursor.read(length))

    def inodes(self) -> Iterator[FileInode]:
        """All files, each once, whatever its number of names. Raises WrongInput if their table is damaged."""
        table = self._metadata.stream(self._inode_table, self._directory_table)
        return file_inodes(table, self._block_size, self.inode_count, self.label)

    def size(self, file: SquashEntry) -> int:
        """Bytes of a file."""
        return self._file_inode(file, with_blocks=False).size

    def mode(self, entry: SquashEntry) -> int:
        """The permission bits of a file or directory."""
        block, offset = self._inode_table + (entry.reference >> 16), entry.reference & 0xFFFF
        permissions: int = _INODE.unpack(self._metadata.cursor(block, offset).read(_INODE.size))[1]
        return permissions

    def open(self, file: SquashEntry) -> IO[bytes]:
        """A file to read and seek in."""
        return io.BufferedReader(_Reader(self, self._file_inode(file)), buffer_size=1 << 16)

    def is_opaque(self, directory: SquashEntry) -> bool:
        """Whether the directory carries an overlay's mark that it hides the lower one."""
        type_, cursor = self._inode(directory.reference, _DIRECTORY)
        if type_ != _DIRECTORY + _EXTENDED:
            return False
        (xattr,) = struct.unpack_from("<I", cursor.read(24), 20)
        if xattr == _NONE32 or self._xattr_table == _NONE64:
            return False
        from toolkit.inventory.formats.xattrs import says_opaque

        return says_opaque(self._file, self._metadata, self._xattr_table, xattr)

    def status(self, entry: SquashEntry) -> Status:
        """The owner, the mode, the number of links and the extended attributes of an entry."""
        from toolkit.inventory.formats.status import read_status

        cursor = self._metadata.cursor(self._inode_table + (entry.reference >> 16), entry.reference & 0xFFFF)
        return read_status(self._file, self._metadata, cursor, self._ids, self._xattr_table)

    def _inode(self, reference: int, wanted: int) -> tuple[int, MetadataCursor]:
        """The type of the inode, basic or extended, and a reader positioned after its header."""
        cursor = self._metadata.cursor(self._inode_table + (reference >> 16), reference & 0xFFFF)
        type_ = _INODE.unpack(cursor.read(_INODE.size))[0]
        if type_ not in (wanted, wanted + _EXTENDED):
            raise corrupt(self.label, f"an inode has type {type_}; expected {wanted}")
        return type_, cursor

    def _list(self, reference: int) -> dict[str, SquashEntry]:
        type_, cursor = self._inode(reference, _DIRECTORY)
        if type_ == _DIRECTORY:
            block, _, size, offset, _ = struct.unpack("<IIHHI", cursor.read(16))
        else:
            _, size, block, _, _, offset, _ = struct.unpack("<IIIIHHI", cursor.read(24))
        found: dict[str, SquashEntry] = {}
        left = size - 3  # the recorded size counts "." and ".." as three bytes
        if left <= 0:
            return found
        cursor = self._metadata.cursor(self._directory_table + block, offset)
        while left > 0:
            count, inode_block, _ = struct.unpack("<III", cursor.read(12))
            left -= 12
            if count >= 256:
                raise corrupt(self.label, f"a directory header claims {count + 1} entries")
            for _ in range(count + 1):
                inode_offset, _, type_, length = struct.unpack("<HHHH", cursor.read(8))
                name = os.fsdecode(cursor.read(length + 1))
                left -= 9 + length
                found[name] = SquashEntry(
                    self._kind(type_, inode_block << 16 | inode_offset), inode_block << 16 | inode_offset
                )
            self._listed += count + 1
            if len(found) > _MAX_ENTRIES or self._listed > _MAX_LISTED:
                raise corrupt(self.label, "it has too many entries")
        if any("/" in name or "\0" in name or name in (".", "..") for name in found):
            raise corrupt(self.label, "a file name has an invalid character")
        inner = [entry.reference for entry in found.values() if entry.kind is EntryKind.DIRECTORY]
        if len({*inner}) < len(inner) or any(self._above.setdefault(inode, reference) != reference for inode in inner):
            raise corrupt(self.label, "a directory is in it twice")  # a tree without an end, or of 2^n paths
        return found

    def _kind(self, type_: int, reference: int) -> EntryKind:
        if type_ == _CHARACTER:
            _, cursor = self._inode(reference, _CHARACTER)
            _, device = struct.unpack("<II", cursor.read(8))
            return EntryKind.WHITEOUT if device == 0 else EntryKind.OTHER
        return _KINDS.get(type_, EntryKind.OTHER)

    def _file_inode(self, file: SquashEntry, *, with_blocks: bool = True) -> _File:
        type_, cursor = self._inode(file.reference, _FILE)
        if type_ == _FILE:
            start, fragment, offset, size = struct.unpack("<IIII", cursor.read(16))
        else:
            start, size, _, _, fragment, offset, _ = struct.unpack("<QQQIIII", cursor.read(40))
        whole, rest = divmod(size, self._block_size)
        count = whole + (1 if rest and fragment == _NONE32 else 0)
        if count > _MAX_BLOCKS:
            raise corrupt(self.label, f"a file in it claims {size} bytes")
        blocks = struct.unpack(f"<{count}I", cursor.read(4 * count)) if with_blocks else ()
        return _File(size, start, fragment, offset, blocks)

    def _fragment(self, number: int) -> tuple[int, int]:
        """Where a fragment block starts, and its size as data blocks have it."""
        if number >= self._fragments:
            raise corrupt(self.label, f"it refers to fragment {number}, but has {self._fragments}")
        index, rest = divmod(number, _FRAGMENTS_A_BLOCK)
        position = int.from_bytes(self._file.read(self._fragment_table + 8 * index, 8), "little")
        start, size, _ = _FRAGMENT.unpack(self._metadata.cursor(position, rest * _FRAGMENT.size).read(_FRAGMENT.size))
        return start, size

    def _read_block(self, position: int, size: int) -> bytes:
        length = size & ~_RAW_DATA
        if length > self._block_size:
            raise corrupt(self.label, f"a block claims {length} bytes")
        data = self._file.read(position, length)
        return data if size & _RAW_DATA else self._metadata.decompressed(data, self._block_size)

    def block_of(self, file: _File, starts: list[int], number: int) -> bytes:
        """The content of block `number` of a file; the one behind the last full one may be a piece of a fragment."""
        wanted = min(self._block_size, file.size - number * self._block_size)
        if number < len(file.blocks):
            size = file.blocks[number]
            content = self._block(starts[number], size) if size else bytes(wanted)  # 0 is a hole
        else:
            start, size = self._fragment(file.fragment)
            content = self._block(start, size)[file.fragment_offset : file.fragment_offset + wanted]
        if len(content) != wanted:
            raise corrupt(self.label, f"a block has {len(content)} bytes; expected {wanted}")
        return content


class _Reader(io.RawIOBase):
    """One file of a squashfs as Python sees files."""

    def __init__(self, image: Squashfs, file: _File) -> None:
        self._image = image
        self._file = file
        lengths = (size & ~_RAW_DATA for size in file.blocks)
        self._starts = list(accumulate(lengths, initial=file.start))
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._position >= self._file.size:
            return 0
        number, offset = divmod(self._position, self._image._block_size)
        piece = self._image.block_of(self._file, self._starts, number)[offset : offset + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
