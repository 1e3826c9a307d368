"""Which of several bases is named first: each rule, and which rule comes before which."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from toolkit.recipes.model import Base, Evidence
from toolkit.recipes.preference import by_preference, version_of

BASE = Base("base", "docker", "a/b:1", framework_version="2.6.0", cuda="12.4", evidence=Evidence.CONFIRMED)


def names(*bases: Base, **served: int) -> list[str]:
    found = {
        tuple(base.name for base in by_preference(order, (lambda base: served[base.name]) if served else None))
        for order in permutations(bases)
    }
    assert len(found) == 1, "the order of the arguments decides nothing"
    return list(found.pop())


@pytest.mark.parametrize(
    "worse",
    [
        {"broken": "the wrong cuDNN"},
        {"family": "NGC"},
        {"family": "ROCm"},
        {"installer": "conda"},
        {"evidence": Evidence.SINGLE},
        {"framework_version": "2.5.1"},
        {"framework_version": None},
        {"cuda": "12.1"},
        {"cuda": None},
    ],
)
def test_base_comes_after_a_better_one(worse: dict[str, str]) -> None:
    assert names(replace(BASE, name="worse", **worse), BASE) == ["base", "worse"]  # type: ignore[arg-type]


def test_rules_come_in_their_order() -> None:
    newest = replace(BASE, framework_version="9.0", cuda="19.0")
    assert names(
        replace(BASE, name="1-old", framework_version="1.0", cuda="13.0"),
        replace(BASE, name="0-newer", cuda="11.8"),
        replace(newest, name="2-single", evidence=Evidence.SINGLE),
        replace(newest, name="3-conda", installer="conda"),
        replace(newest, name="4-vendor", family="NGC"),
        replace(newest, name="5-broken", broken="it is"),
    ) == ["0-newer", "1-old", "2-single", "3-conda", "4-vendor", "5-broken"]


def test_base_that_serves_more_comes_before_a_newer_one() -> None:
    newer = replace(BASE, name="newer", framework_version="3.0")
    single = replace(newer, name="single", evidence=Evidence.SINGLE)
    assert names(BASE, newer, single) == ["newer", "base", "single"]
    assert names(BASE, newer, single, base=5, newer=3, single=9) == ["base", "newer", "single"]


def test_versions_are_compared_as_numbers() -> None:
    assert names(replace(BASE, name="ten", framework_version="2.10"), BASE) == ["ten", "base"]


def test_equal_bases_keep_their_order() -> None:
    other = replace(BASE, name="other")
    assert by_preference([BASE, other]) == [BASE, other]
    assert by_preference([other, BASE]) == [other, BASE]


@pytest.mark.parametrize("text", [None, "", "unknown", "2.x"])
def test_missing_version_is_the_lowest(text: str | None) -> None:
    assert version_of(text) < version_of("0.1")
