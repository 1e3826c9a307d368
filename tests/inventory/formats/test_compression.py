"""Decompression: bounded, whatever the data say."""

from __future__ import annotations

import contextlib
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.inventory.formats.compression import DECOMPRESSORS


@given(st.binary(max_size=2000), st.sampled_from(sorted(DECOMPRESSORS)))
def test_decompressors_respect_limit_or_raise_value_error(data: bytes, number: int) -> None:
    with contextlib.suppress(ValueError):
        assert len(DECOMPRESSORS[number](data, 8192)) <= 8192


def test_block_larger_than_limit_is_refused() -> None:
    assert len(DECOMPRESSORS[1](zlib.compress(bytes(50_000_000)), 8192)) == 8192
    with pytest.raises(ValueError, match="insufficient space"):
        DECOMPRESSORS[5](b"\x1f\x00\x01\x00" + b"\xff" * 50_000 + b"\x00", 8192)


def test_lz4_block_takes_no_size_from_its_first_bytes() -> None:
    """They are where the library's own format keeps the size, 2 GiB here: they are a token and literals."""
    tracemalloc.start()
    with pytest.raises(ValueError, match="corrupt input"):
        DECOMPRESSORS[5](b"\xff\xff\xff\x7f" + bytes(20), 8192)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
