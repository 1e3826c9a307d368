"""What squashfs compresses with: each as one function that never gives back more than it is allowed to."""

from __future__ import annotations

import io
import lzma
import sys
import zlib
from typing import TYPE_CHECKING

from toolkit.inventory.formats.lzo import decompress_lzo

if TYPE_CHECKING:
    from collections.abc import Callable

_XZ_MEMORY = 64 << 20  # squashfs blocks are at most 1 MiB: a larger dictionary is no honest one
_ZSTD_WINDOW = 8 << 20


def _gzip(data: bytes, limit: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def _lzma(container: int) -> Callable[[bytes, int], bytes]:
    def decompress(data: bytes, limit: int) -> bytes:
        try:
            return lzma.LZMADecompressor(container, memlimit=_XZ_MEMORY).decompress(data, limit)
        except lzma.LZMAError as error:
            raise ValueError(str(error)) from error

    return decompress


def _zstd(data: bytes, limit: int) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd

        try:
            decompressor = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
            return decompressor.decompress(data, limit)
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from error
    import zstandard

    try:
        # The one-shot call believes the size that the frame claims; the reader gives no more than is asked for.
        reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(io.BytesIO(data))
        return reader.read(limit)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def _lz4(data: bytes, limit: int) -> bytes:
    import lz4.block

    try:
        # Given a size, the library allocates just that, and takes no size from the first bytes of the block.
        content: bytes = lz4.block.decompress(data, uncompressed_size=limit)
    except lz4.block.LZ4BlockError as error:
        raise ValueError(str(error)) from error
    return content


# Numbers of the superblock. Source: squashfs-tools, squashfs_fs.h. Each takes the data and the largest size that it
# may give back, stops there, and raises ValueError if the data is damaged.
DECOMPRESSORS: dict[int, Callable[[bytes, int], bytes]] = {
    1: _gzip,
    2: _lzma(lzma.FORMAT_ALONE),
    3: decompress_lzo,
    4: _lzma(lzma.FORMAT_XZ),
    5: _lz4,
    6: _zstd,
}
