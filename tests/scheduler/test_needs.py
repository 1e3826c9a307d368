"""What a job needs in numbers, and those numbers in words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.profiles import GIB
from toolkit.scheduler.needs import (
    Needs,
    array_size,
    describe_memory,
    describe_time,
    format_time,
    memory_option,
    needs_of,
)
from toolkit.scheduler.resources import Resources
from toolkit.scheduler.values import Gpus, parse_array, parse_time
from toolkit.support.quantities import parse_size


def test_needs_of_resources() -> None:
    resources = Resources(
        nodes=2,
        tasks_per_node=4,
        cpus_per_task=8,
        gpus=Gpus(8, "a100"),
        mem="16G",
        time=60,
        array=parse_array("0-9:3,20"),
    )
    assert needs_of(resources) == Needs(2, 8, "a100", 32, 16 * GIB, 60, 5)
    assert needs_of(resources).gpus_per_node == 4
    assert needs_of(Resources()) == Needs()
    assert needs_of(Resources(time=0)).time == math.inf
    assert needs_of(Resources(gpus=Gpus(0))) == Needs(gpus=0)


@pytest.mark.parametrize(("array", "tasks"), [("0-9", 10), ("0-9:3%2", 4), ("1,3,7", 3), ("5", 1), ("0-1,0-1", 4)])
def test_array_size(array: str, tasks: int) -> None:
    assert array_size(parse_array(array)) == tasks


@pytest.mark.parametrize(
    ("seconds", "words", "option"),
    [
        (300, "5 minutes", "00:05:00"),
        (86_400, "24 hours", "1-00:00:00"),
        (7 * 86_400, "7 days", "7-00:00:00"),
        (5400, "1 hour 30 minutes", "01:30:00"),
        (61, "1 minute 1 second", "00:01:01"),
        (0, "0 seconds", "00:00:00"),
        (math.inf, "no limit", "UNLIMITED"),
    ],
)
def test_times_in_words_and_as_options(seconds: float, words: str, option: str) -> None:
    assert (describe_time(seconds), format_time(seconds)) == (words, option)


@given(st.integers(1, 10**8))
def test_a_formatted_time_is_read_as_the_same(seconds: int) -> None:
    assert parse_time(format_time(seconds)) == seconds


@given(st.integers(1, 2**45))
def test_a_memory_option_is_never_above_the_size(size: int) -> None:
    asked = parse_size(memory_option(size))
    assert asked <= size < asked + 1024**2


def test_memory_in_words() -> None:
    assert [describe_memory(16 * GIB), describe_memory(1000 * 1024**2)] == ["16 GiB", "1000 MiB"]
    assert describe_memory(99_999 * GIB) == "99999 GiB"
