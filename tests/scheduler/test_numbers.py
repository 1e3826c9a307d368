"""Numbers in what programs print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler.numbers import decimal, leading, whole


@pytest.mark.parametrize("text", ["", "²", "٣", "1_0", "1.0", " 1", "1e3", "9" * 19, "9" * 5000, None])
def test_no_whole_number(text: str | None) -> None:
    assert whole(text) is None


@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_numbers_are_read(number: int) -> None:
    assert whole(str(number)) == leading(f"{number}K") == number
    assert decimal(str(abs(number) % 10**15)) == abs(number) % 10**15


@pytest.mark.parametrize("text", ["", "1.2.3", ".5", "-1", "1e5", "nan", "inf", "9" * 400])
def test_no_decimal_number(text: str) -> None:
    assert decimal(text) is None
