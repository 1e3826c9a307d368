"""Files of zip archives that declare less than they unpack to."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import pytest

from toolkit.support.zip_members import read_member

MIB = 1 << 20


def archive(content: bytes, compression: int, declared: int | None = None) -> zipfile.ZipFile:
    """With one file, whose size the table of contents declares."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as made:
        made.writestr("METADATA", content)
    if declared is not None:
        with data.getbuffer() as view:
            struct.pack_into("<I", view, bytes(view).rfind(b"PK\x01\x02") + 24, declared)
    return zipfile.ZipFile(data)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("size", [0, 1, 5000, MIB])
def test_a_file_is_read_whole(compression: int, size: int) -> None:
    with archive(b"x" * size, compression) as made:
        assert read_member(made, made.infolist()[0], MIB) == b"x" * size


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_takes_no_more_than_it_declares(compression: int) -> None:
    with archive(bytes(60 * MIB), compression, declared=1000) as made:
        tracemalloc.start()
        try:
            with pytest.raises((ValueError, zipfile.BadZipFile)):
                read_member(made, made.infolist()[0], MIB)
            assert tracemalloc.get_traced_memory()[1] < 5 * MIB
        finally:
            tracemalloc.stop()


def test_a_file_that_is_too_large_is_not_read() -> None:
    with archive(bytes(MIB + 1), zipfile.ZIP_DEFLATED) as made, pytest.raises(ValueError, match="too large"):
        read_member(made, made.infolist()[0], MIB)
