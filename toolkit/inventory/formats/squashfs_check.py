"""Read a newly packed image back: every block of its file systems is decompressed, and has the expected size.

A packer can write a damaged image and report success (Apptainer issue 3486); it then fails where it is used. Blocks of
gzip and xz have checksums of their own. Those of zstd and lz4 have none: most damage is found by their structure.
Source of the format: squashfs-tools-ng, doc/format.adoc.
"""

from __future__ import annotations

import lzma
import os
import struct
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from toolkit.inventory.formats.compression import DECOMPRESSORS
from toolkit.inventory.formats.images import mounted_partitions
from toolkit.inventory.formats.inodes import file_inodes
from toolkit.inventory.formats.kinds import PathKind, kind_of
from toolkit.inventory.formats.metadata_blocks import METADATA_SIZE, ImageFile, MetadataBlocks
from toolkit.inventory.formats.sif import FileSystem, read_sif
from toolkit.inventory.formats.squashfs import MAGIC
from toolkit.inventory.formats.tree import corrupt
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SUPERBLOCK = struct.Struct("<4s4I6H8Q")
_NONE32, _NONE64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_RAW_DATA = 1 << 24
_FRAGMENT = struct.Struct("<QII")
_GZIP, _XZ, _ZSTD = 1, 4, 6
_XZ_MEMORY = 64 << 20  # bytes, as in compression.py
_TASK = 4 << 20  # compressed bytes that one thread takes at once
_MAX_TASKS = 4  # for each thread: read, and not yet decompressed
_MAX_INODES = 1 << 26


class Block(NamedTuple):
    """A block of data: its place, its size as the format has it, and how many bytes it holds, at least and at most."""

    position: int
    size: int
    least: int
    most: int

    @property
    def length(self) -> int:
        """Its bytes in the file."""
        return self.size & ~_RAW_DATA


def read_back(path: Path, *, cores: int | None = None, on_progress: Callable[[int, int], None] | None = None) -> None:
    """Decompress every block of a SIF or a squashfs at `path`, with up to `cores` threads (default: all cores).

    `on_progress` is called with the compressed bytes of data that are checked, and all of them. Raises WrongInput
    (`corrupt-image`) for the first block that is damaged, and if the image cannot be read or is not of squashfs.
    """
    if kind_of(path) is PathKind.SQUASHFS:
        places: list[tuple[int, int | None]] = [(0, None)]
    else:
        sif = read_sif(path)
        places = []
        for found in mounted_partitions(sif):
            if found.partition is None or found.partition.file_system != FileSystem.SQUASHFS:
                raise WrongInput(f"{path}: data object {found.id} is not squashfs", code="foreign-image")
            places.append((found.offset, found.size))
    for offset, size in places:
        _Check(path, offset, size).run(cores or len(os.sched_getaffinity(0)), on_progress)


class _Check:
    """The file system that starts `offset` bytes into a file."""

    def __init__(self, path: Path, offset: int, size: int | None) -> None:
        self._path, self._offset, self._size, self._label = path, offset, size, str(path)

    def run(self, cores: int, on_progress: Callable[[int, int], None] | None) -> None:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise WrongInput(f"cannot read {self._path}: {error.strerror}") from error
        try:
            there = os.fstat(descriptor).st_size - self._offset
            self._file = ImageFile(
                self._label, descriptor, self._offset, there if self._size is None else min(self._size, there)
            )
            self._read_tables()
            self._read_data(self._blocks(), cores, on_progress)
        except OSError as error:
            raise corrupt(self._label, f"it cannot be read: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def _read_tables(self) -> None:
        fields = _SUPERBLOCK.unpack(self._file.read(0, _SUPERBLOCK.size))
        magic, self._inodes, _, self._block_size, self._fragments, compressor = fields[:6]
        self._ids, used = fields[8], fields[12]
        ids, xattrs, inodes, directories, fragments, export = fields[13:]
        if magic != MAGIC or compressor not in DECOMPRESSORS or not 1 << 12 <= self._block_size <= 1 << 20:
            raise corrupt(self._label, "its superblock is damaged")
        if used > self._file.size or self._inodes > _MAX_INODES:
            raise corrupt(self._label, f"its file system should have {used} bytes, but {self._file.size} are there")
        self._decompress = whole(compressor)
        self._metadata = MetadataBlocks(self._file, self._decompress)
        # Each table is behind the one before it; the blocks of a table with an index lie before that index.
        starts = sorted(start for start in (directories, fragments, export, ids, xattrs) if start != _NONE64)
        if (
            not _SUPERBLOCK.size <= inodes <= directories
            or not starts
            or starts[0] != directories
            or starts[-1] >= used
        ):
            raise corrupt(self._label, "its tables are not where they should be")
        self._inode_table, self._directory_table = inodes, directories
        self._first_blocks: list[int] = []
        self._fragment_table = self._indexed(fragments, self._fragments, _FRAGMENT.size)
        self._indexed(ids, self._ids, 4)
        self._indexed(export, self._inodes, 8)
        ends = [position for position in self._first_blocks if position >= directories]
        self._metadata.stream(directories, min(ends, default=starts[1] if len(starts) > 1 else used))
        if xattrs != _NONE64:
            self._read_xattrs(xattrs)

    def _indexed(self, start: int, count: int, size: int) -> bytes:
        """The content of a table whose blocks are listed at `start`."""
        if start == _NONE64 or not count:
            return b""
        number = -(-count * size // METADATA_SIZE)
        positions = struct.unpack(f"<{number}Q", self._file.read(start, 8 * number))
        content = b"".join(self._metadata.block(position)[0] for position in positions)
        if len(content) != count * size:
            raise corrupt(self._label, f"a table has {len(content)} bytes; expected {count * size}")
        self._first_blocks.append(positions[0])
        return content

    def _read_xattrs(self, start: int) -> None:
        values, count, _ = struct.unpack("<QII", self._file.read(start, 16))
        number = -(-count * 16 // METADATA_SIZE)
        positions = struct.unpack(f"<{number}Q", self._file.read(start + 16, 8 * number))
        for position in positions:
            self._metadata.block(position)
        if positions:
            self._metadata.stream(values, positions[0])

    def _blocks(self) -> list[Block]:
        """All blocks of data, each once, in the order of the file."""
        found: dict[int, Block] = {}
        tails = [0] * self._fragments
        table = self._metadata.stream(self._inode_table, self._directory_table)
        for size, start, fragment, offset, sizes, _ in file_inodes(table, self._block_size, self._inodes, self._label):
            for number, block in enumerate(sizes):
                wanted = min(self._block_size, size - number * self._block_size)
                if block:
                    known = found.setdefault(start, Block(start, block, wanted, wanted))
                    if (known.size, known.most) != (block, wanted):
                        raise corrupt(self._label, f"two files disagree about the block at {start}")
                    start += known.length
            if fragment != _NONE32:
                if fragment >= self._fragments:
                    raise corrupt(self._label, f"it refers to fragment {fragment}, but has {self._fragments}")
                tails[fragment] = max(tails[fragment], offset + size % self._block_size)
        for (start, block, _), least in zip(_FRAGMENT.iter_unpack(self._fragment_table), tails, strict=True):
            found[start] = Block(start, block, least, self._block_size)
        return [found[start] for start in sorted(found)]

    def _read_data(self, blocks: list[Block], cores: int, on_progress: Callable[[int, int], None] | None) -> None:
        total, done = sum(block.length for block in blocks), 0
        running = threading.BoundedSemaphore(_MAX_TASKS * cores)
        with ThreadPoolExecutor(cores) as threads:
            tasks = []
            for group in _groups(blocks):
                running.acquire()
                task = threads.submit(self._check_blocks, group)
                task.add_done_callback(lambda _: running.release())
                tasks.append((task, sum(block.length for block in group)))
                if tasks[0][0].done():
                    first, length = tasks.pop(0)
                    try:
                        first.result()
                    except BaseException:
                        threads.shutdown(cancel_futures=True)
                        raise
                    done += length
                    if on_progress is not None:
                        on_progress(done, total)
            for task, length in tasks:
                task.result()
                done += length
                if on_progress is not None:
                    on_progress(done, total)

    def _check_blocks(self, blocks: list[Block]) -> None:
        start = blocks[0].position
        data = memoryview(self._file.read(start, blocks[-1].position + blocks[-1].length - start))
        for block in blocks:
            if block.length > self._block_size:
                raise corrupt(self._label, f"the block at {block.position} claims {block.length} bytes")
            length = block.length
            if not block.size & _RAW_DATA:
                at = block.position - start
                try:
                    length = len(self._decompress(bytes(data[at : at + length]), self._block_size))
                except ValueError as error:
                    message = f"the block at {block.position} cannot be decompressed ({error})"
                    raise corrupt(self._label, message) from error
            if not block.least <= length <= block.most:
                message = f"the block at {block.position} has {length} bytes; expected {block.most}"
                raise corrupt(self._label, message)


def _groups(blocks: list[Block]) -> Iterator[list[Block]]:
    """Blocks that are read at once: next to each other, some MiB together."""
    group: list[Block] = []
    for block in blocks:
        end = group[-1].position + group[-1].length if group else 0
        if group and (block.position != end or end - group[0].position >= _TASK):
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def whole(compressor: int) -> Callable[[bytes, int], bytes]:
    """A function that decompresses one block to its end, checksums included; at most `limit` bytes.

    It raises ValueError if the data is damaged, or is more than one block.
    """
    if compressor == _GZIP:
        return lambda data, limit: _to_end(zlib.decompressobj(), data, limit, zlib.error)
    if compressor == _XZ:
        return lambda data, limit: _to_end(
            lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY), data, limit, lzma.LZMAError
        )
    if compressor == _ZSTD and sys.version_info < (3, 14):
        return _zstd
    return DECOMPRESSORS[compressor]


def _to_end(
    decompressor: zlib._Decompress | lzma.LZMADecompressor, data: bytes, limit: int, error: type[Exception]
) -> bytes:
    try:
        content = decompressor.decompress(data, limit + 1)
    except error as reason:
        raise ValueError(str(reason)) from reason
    if len(content) > limit or not decompressor.eof or decompressor.unused_data:
        raise ValueError("it does not end where it should")
    return content


_local = threading.local()


def _zstd(data: bytes, limit: int) -> bytes:
    """The one-shot call, which is faster than a reader: it allocates what the frame claims, which is checked first."""
    import zstandard

    try:
        if not 0 < zstandard.frame_content_size(data) <= limit:
            return DECOMPRESSORS[_ZSTD](data, limit)
        if not hasattr(_local, "decompressor"):
            _local.decompressor = zstandard.ZstdDecompressor(max_window_size=8 << 20)
        content: bytes = _local.decompressor.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    return content
