"""Sizes and ages as users write them."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.support.errors import WrongInput
from toolkit.support.quantities import format_age, format_seconds, parse_age, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("50G", 50 << 30),
        ("1.5 TiB", 3 << 39),
        ("800m", 800 << 20),
        ("0", 0),
        ("1000", 1000),
        ("7B", 7),
        ("1KB", 1024),
        (" 2P ", 2 << 50),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (4.25, "4.2 s"), (59.96, "1 m 0 s"), (80, "1 m 20 s"), (3599.6, "1 h 0 m"), (3700, "1 h 1 m")],
)
def test_measured_times(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 2592000), ("12h", 43200), ("1.5w", 907200), ("90 s", 90), ("5M", 300)]
)
def test_ages(text: str, seconds: int) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "G", "-1G", "1.G", ".5G", "1e3", "1,5G", "1GG", "٣G", "9" * 16, "9" * 12 + "P", "1\n2"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(WrongInput, match=r"--keep (should be a size such as 50G|is too large)"):
        parse_size(text, "--keep")


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1y", "1dd", "٣d", "9" * 15 + "w"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(WrongInput, match=r"--older (should be an age such as 30d|is too large)"):
        parse_age(text, "--older")


@given(st.text(max_size=12))
@examples(500)
def test_any_text_is_a_number_or_wrong_input(text: str) -> None:
    for parse in (parse_size, parse_age):
        with contextlib.suppress(WrongInput):
            assert 0 <= parse(text) < 2**63


@given(st.integers(0, 2**33 - 1), st.sampled_from("KMG"), st.sampled_from(["", "B", "iB"]))
@examples(200)
def test_whole_sizes_are_exact(number: int, unit: str, end: str) -> None:
    assert parse_size(f"{number}{unit}{end}") == number * 1024 ** ("KMG".index(unit) + 1)


@given(st.floats(0, 1e12))
@examples(100)
def test_a_formatted_age_is_read_as_the_largest_unit_in_it(seconds: float) -> None:
    text = format_age(seconds)
    assert re.fullmatch(r"\d+ [smhd]", text)
    assert parse_age(text) <= seconds


def test_an_age_of_the_future_is_none() -> None:
    assert format_age(-5) == "0 s"
