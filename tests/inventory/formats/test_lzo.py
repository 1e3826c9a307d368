"""LZO1X blocks: as lzop's instructions mean them, bounded, and refused where they are damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.inventory.formats.lzo import decompress_lzo

END = b"\x11\x00\x00"
# Four literals, then a match of 20 bytes four bytes back (an M3 instruction: 001LLLLL, distance - 1 in 14 bits).
REPEATED = bytes([17 + 4]) + b"abcd" + bytes([0x20 | 18, (4 - 1) << 2 & 0xFF, 0]) + END


def literals(data: bytes) -> bytes:
    """A block that only copies; up to 238 bytes."""
    return bytes([17 + len(data)]) + data + END


@given(st.binary(min_size=1, max_size=238))
def test_literals_come_out_as_they_are(data: bytes) -> None:
    assert decompress_lzo(literals(data), len(data)) == data


def test_a_match_repeats_what_it_overlaps() -> None:
    assert decompress_lzo(REPEATED, 24) == b"abcd" * 6


def test_a_long_run_of_literals_has_its_length_in_more_bytes() -> None:
    data = bytes(range(256)) * 2
    # 0000 0000, then 255 for each zero byte, then the rest; 18 is what the instruction adds.
    block = bytes([0, 0, len(data) - 18 - 255]) + data + END
    assert decompress_lzo(block, 512) == data


@pytest.mark.parametrize(
    ("block", "limit", "message"),
    [
        (REPEATED, 23, "exceeds its maximum size"),
        (literals(b"abcd"), 3, "exceeds its maximum size"),
        (literals(b"abcd")[:-3], 9, "truncated"),
        (bytes([17 + 9]) + b"ab", 9, "truncated"),
        (bytes([17 + 4]) + b"abcd" + bytes([0x20 | 18, (9 - 1) << 2, 0]) + END, 99, "invalid back-reference"),
        (b"", 9, "truncated"),
    ],
)
def test_a_damaged_block_is_refused(block: bytes, limit: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decompress_lzo(block, limit)
