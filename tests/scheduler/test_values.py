"""What may be written for each resource, and what is refused."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler import values
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import NO_TIME_LIMIT, Gpus
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = {
    "30": 30 * 60,
    "1:30": 90,
    "4:00:00": 4 * 3600,
    "0:90:00": 90 * 60,
    "1-0": 86_400,
    "2-12": 60 * 3600,
    "1-2:3": 86_400 + 2 * 3600 + 3 * 60,
    "1-2:3:4": 86_400 + 2 * 3600 + 3 * 60 + 4,
    "UNLIMITED": NO_TIME_LIMIT,
    "infinite": NO_TIME_LIMIT,
    "0": NO_TIME_LIMIT,
}


@pytest.mark.parametrize(("written", "seconds"), TIMES.items())
def test_every_notation_of_slurm_for_a_time(written: str, seconds: int) -> None:
    assert values.parse_time(written) == seconds


def test_time_that_a_user_types_is_taken_as_it_is() -> None:
    written = ("99:59", "100:00:00", "1-99", "90", "0:0:45747")
    assert [values.check_time(text) for text in written] == [5999, 360_000, 442_800, 5400, 45_747]


@pytest.mark.parametrize(("written", "gpus"), {"0": Gpus(0), "2": Gpus(2), "tesla:1": Gpus(1, "tesla")}.items())
def test_gpus(written: str, gpus: Gpus) -> None:
    assert values.parse_gpus(written) == gpus
    assert str(gpus) == written


@pytest.mark.parametrize(
    ("written", "memory"), {"16G": "16G", "16gb": "16G", "512": "512M", "1t": "1T", "0": "0", "0G": "0"}.items()
)
def test_memory(written: str, memory: str) -> None:
    assert values.parse_memory(written) == memory


@pytest.mark.parametrize(
    ("written", "array", "text"),
    [
        ("0-9%4", values.Array((values.TaskRange(0, 9),), 4), "0-9%4"),
        (
            "007,9-9,1-8:3",
            values.Array((values.TaskRange(7, 7), values.TaskRange(9, 9), values.TaskRange(1, 8, 3))),
            "",
        ),
    ],
)
def test_array(written: str, array: values.Array, text: str) -> None:
    assert values.parse_array(written) == array
    assert str(array) == (text or "7,9,1-8:3")


@pytest.mark.parametrize(("memory", "mebibytes"), [("16G", 16384), ("1K", 1), ("2049K", 3), ("2T", 2 << 20), ("0", 0)])
def test_memory_in_mebibytes(memory: str, mebibytes: int) -> None:
    assert values.memory_mib(memory) == mebibytes


def test_clock_time() -> None:
    assert [values.clock_time(seconds) for seconds in (0, 61, 360_000)] == ["0:00:00", "0:01:01", "100:00:00"]


REFUSED: list[tuple[Callable[[str], object], str, str]] = [
    *[(values.check_time, "--time", bad) for bad in ("99:99", "4:60", "1:060:00", "1-2:3:61", "banana")],
    *[
        (values.parse_time, "--time", bad)
        for bad in ("banana", "", "-1", "1h", "1:2:3:4", "1-", "1.5", "٣", "1 0", "4:00:00\n", "99999999")
    ],
    *[
        (values.parse_gpus, "--gpus", bad)
        for bad in ("-1", "", "one", "tesla", "tesla:", "tesla:0", "tesla:-1", ":1", "1:1:1", "a b:1", "1\n", "²")
    ],
    *[(values.parse_memory, "--mem", bad) for bad in ("", "-1G", "1.5G", "16X", "G", "16 G", "16GiB", "16G\n")],
    *[(values.check_partition, "--partition", bad) for bad in ("", "gpu debug", "gpu,", "-p", "gpu\n", "gpu#")],
    *[(values.check_constraint, "--constraint", bad) for bad in ("", "a b", "a\nb", "-x")],
    *[(values.check_module, "--module", bad) for bad in ("", "-x", "a b", "a\nb", "$(id)", "a;b", "'a'")],
    *[(values.check_account, "--account", bad) for bad in ("", "a,b", "a b", "a\n#SBATCH --x")],
    *[
        (values.parse_array, "--array", bad)
        for bad in ("", "a", "5-1", "1-", "0-9%", "0-9%0", "1,,2", "0-9:0", "1\n", "1-2-3")
    ],
    *[(values.check_qos, "--qos", bad) for bad in ("", "a,b", "a b", "-x", "a\n#SBATCH --x")],
]


@pytest.mark.parametrize(("check", "option", "written"), REFUSED)
def test_what_cannot_be_used_is_refused_by_the_name_of_its_option(
    check: Callable[[str], object], option: str, written: str
) -> None:
    with pytest.raises(WrongInput) as refusal:
        check(written)
    assert option in refusal.value.message
    assert "\n" not in refusal.value.message


@given(st.text())
def test_text_is_used_or_refused_and_never_crashes(text: str) -> None:
    for option in OPTIONS.values():
        if option.check is not values.check_count:
            with contextlib.suppress(WrongInput):
                option.check(text, "--x")


@given(st.integers(1, 10**6), st.integers(0, 10**4), st.integers(0, 10**4), st.integers(0, 10**4))
def test_times_add_up(days: int, hours: int, minutes: int, seconds: int) -> None:
    expected = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert values.parse_time(f"{days}-{hours}:{minutes}:{seconds}") == expected
