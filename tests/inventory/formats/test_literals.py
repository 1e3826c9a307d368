"""Values in Python source, read without running it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.inventory.formats.literals import assignments


@given(st.text())
def test_literals_of_invalid_python_do_not_raise(text: str) -> None:
    assert isinstance(assignments(text), dict)


def test_literals_of_deeply_nested_python() -> None:
    assert assignments("x = " + "(" * 100_000) == {}
    assert assignments("x = " + "-" * 100_000 + "1") == {}
