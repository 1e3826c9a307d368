"""Read a file of a zip archive that a stranger sent: it takes no more memory than its declared size."""

from __future__ import annotations

import zipfile

_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, largest: int) -> bytes:
    """The content of a file in a zip archive.

    zipfile compares the declared size with what it has unpacked: with as much as 2 GiB of deflate, and all of bzip2 and
    LZMA. So it is read in a piece, and nothing else than deflate, which wheels have. Raises ValueError for another
    compression or for more than `largest` bytes, and what zipfile raises.
    """
    if entry.compress_type not in _KNOWN:
        raise ValueError(f"{entry.filename} is compressed in the unusual way {entry.compress_type}")
    if entry.file_size > largest:
        raise ValueError(f"{entry.filename} is too large")
    with archive.open(entry) as file:
        return file.read(largest + 1)
