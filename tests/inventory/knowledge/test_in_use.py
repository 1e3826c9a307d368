"""Distributions that can be imported beside another one, and fail in use."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.in_use import failing_in_use, fails_in_use


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        ({"keras-bert": "0.89.0", "keras": "3.4.1"}, ["keras-bert 0.89.0 can be imported beside keras 3.4.1, but"]),
        ({"keras-bert": "0.89.0", "keras": "2.15.0"}, []),
        ({"keras-bert": "0.89.0"}, []),
        ({"keras": "3.4.1"}, []),
    ],
)
def test_pair_is_found_by_both_versions(versions: dict[str, str], found: list[str]) -> None:
    told = [problem for problem, _ in failing_in_use(versions)]
    assert [problem[: len(start)] for problem, start in zip(told, found, strict=True)] == found


def test_table_is_complete() -> None:
    for rule in fails_in_use():
        assert (rule.name, rule.other) == (canonicalize_name(rule.name), canonicalize_name(rule.other))
        assert SpecifierSet(rule.versions)
        assert SpecifierSet(rule.other_versions)
        assert rule.problem
        assert not rule.problem.endswith(".")
        assert rule.fix.endswith(".")
        assert rule.source
