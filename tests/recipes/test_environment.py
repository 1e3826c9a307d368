"""What a value of `[environment]` may refer to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.recipes.environment import EXTENDABLE, Extended, extended, problem

PARTS = st.text("abc/.- ", max_size=6)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("PATH", "/opt/bin:$PATH", Extended("/opt/bin", "")),
        ("PATH", "${PATH}:/opt/bin", Extended("", "/opt/bin")),
        ("LD_LIBRARY_PATH", "/a:/b:${LD_LIBRARY_PATH}:/c", Extended("/a:/b", "/c")),
        ("PATH", "$PATH", Extended("", "")),
        ("PATH", "/opt/bin:$HOME", None),
        ("PATH", "/opt/bin:$LD_LIBRARY_PATH", None),
        ("PATH", "$HOME/bin:$PATH", None),
        ("PATH", "/opt/bin$PATH", None),
        ("PYTHONPATH", "/opt:$PYTHONPATH", None),
    ],
)
def test_only_the_image_s_own_list_can_be_extended(name: str, value: str, expected: Extended | None) -> None:
    assert extended(name, value) == expected


@given(st.sampled_from(EXTENDABLE), PARTS.filter(bool), PARTS.filter(bool))
def test_an_extended_list_keeps_what_stands_around_the_reference(name: str, before: str, after: str) -> None:
    assert extended(name, f"{before}:${name}:{after}") == Extended(before, after)
    assert problem(name, f"{before}:${{{name}}}:{after}") is None


@pytest.mark.parametrize(
    ("name", "value", "message", "fix"),
    [
        ("DATA", "$HOME/data", "contains $HOME, which no shell expands", "Write the value in full."),
        ("DATA", "${A:-b}", "contains ${A:-b}", "in full"),
        ("PATH", "$HOME/bin:/usr/bin:/bin", "contains $HOME", 'write PATH = "/DIRECTORY:$PATH"'),
        ("PATH", "/opt/bin", "lacks /usr/bin and /bin", 'PATH = "/DIRECTORY:$PATH"'),
        ("PATH", "/opt/bin:/usr/bin", "lacks /bin", "Extend"),
    ],
)
def test_a_value_that_would_not_work_is_explained(name: str, value: str, message: str, fix: str) -> None:
    found = problem(name, value)
    assert found is not None
    assert message in found[0]
    assert fix in found[1]


@pytest.mark.parametrize(
    ("name", "value"), [("PRICE", "5 $"), ("PRICE", "$5"), ("PATH", "/opt/bin:/usr/bin/:/bin"), ("X", "")]
)
def test_a_dollar_that_names_nothing_is_text(name: str, value: str) -> None:
    assert problem(name, value) is None
