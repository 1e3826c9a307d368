"""The patterns: each is complete, has its source, and matches a line that has its core."""

from __future__ import annotations

import re
from functools import cache

from tests.gpu.logs.corpus import CASES
from toolkit.gpu.logs.patterns import Kind, Pattern, core_groups, patterns
from toolkit.support.explanations import explanations

PROBLEMS = (Kind.CAUSE, Kind.MEMORY, Kind.CRASH)


@cache
def lines_of(pattern: Pattern) -> tuple[str, ...]:
    """The lines of the corpus that a pattern matches."""
    lines = dict.fromkeys(line for case in CASES for line in case.log.splitlines())
    return tuple(line for line in lines if not pattern.says and pattern.regex.search(line))


def test_a_pattern_is_complete() -> None:
    for pattern in patterns():
        assert all((pattern.source, pattern.versions, pattern.meaning, pattern.cores)), pattern.id
        assert all(core == core.lower() for core in pattern.cores), pattern.id
        assert (pattern.code is None) == (pattern.fix is None), pattern.id
        assert pattern.code is None or pattern.code in explanations(), pattern.id
        assert pattern.code or pattern.kind not in PROBLEMS, pattern.id
        assert set(re.findall(r"{(\w+)}", pattern.meaning)) <= set(pattern.regex.groupindex), pattern.id


def test_a_line_that_a_pattern_matches_is_matched_with_zeros() -> None:
    for pattern in patterns():
        for line in lines_of(pattern):
            assert pattern.own or pattern.of_zeros.search(re.sub(r"[1-9]", "0", line)), (pattern.id, line)


def test_names_of_patterns_are_unique() -> None:
    names = [pattern.id for pattern in patterns()]
    assert len(names) == len(set(names))


def test_a_line_that_a_pattern_matches_has_one_of_its_cores() -> None:
    for pattern in patterns():
        for line in lines_of(pattern):
            assert any(core in line.lower() for core in pattern.cores), pattern.id


def test_the_groups_have_each_core_of_each_pattern_under_a_word_of_it() -> None:
    grouped = {(core, pattern.id) for _, group in core_groups() for core, found in group for pattern in found}
    assert grouped == {
        (re.sub("[1-9]", "0", core).encode(), pattern.id) for pattern in patterns() for core in pattern.cores
    }
    assert all(word in core for word, group in core_groups() for core, _ in group)


def test_most_patterns_have_a_line_in_the_corpus() -> None:
    seen = {pattern.id for pattern in patterns() if lines_of(pattern)}
    assert len(seen) >= 60
    print("without a line in the corpus:", sorted({pattern.id for pattern in patterns()} - seen))
