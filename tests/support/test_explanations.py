"""The catalogue of codes, as `ctk explain` looks it up."""

from __future__ import annotations

import pytest

from toolkit.support.errors import WrongInput
from toolkit.support.explanations import Explanation, explanation, explanations, sections


def test_sections_come_in_their_order_and_hold_every_code_once() -> None:
    found = sections()
    assert [section.order for section in found] == sorted({section.order for section in found})
    codes = [entry.code for section in found for entry in section.explanations]
    assert sorted(codes) == sorted(explanations())


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 130])
def test_an_exit_status_may_be_given_as_a_number(status: int) -> None:
    assert explanation(str(status)) is not None
    assert explanation(str(status)).code == f"exit-{status}"


@pytest.mark.parametrize(
    ("code", "hint"),
    [("disk-ful", ' Did you mean "disk-full"'), ("QQQ", ""), ("7", ""), ("", "")],
)
def test_unknown_code_is_refused_with_near_ones(code: str, hint: str) -> None:
    with pytest.raises(WrongInput) as caught:
        explanation(code)
    assert f"unknown code {code!r}." in caught.value.message
    assert caught.value.message.partition(f"{code!r}.")[2].startswith(hint)


def test_summary_is_the_first_paragraph_in_one_line() -> None:
    entry = Explanation("x", "X", (), "One\nline.\n\nMore of it.", None, "here")
    assert entry.summary == "One line."
    assert entry.as_json()["meaning"] == "One\nline.\n\nMore of it."
