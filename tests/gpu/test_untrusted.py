"""The reader of answers from a container: every type is checked, and nothing else is raised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.gpu.answers import FORGED, JSON
from toolkit.gpu.untrusted import Fields, UnreadableError, parse_answer, required, unreadable_answer


def test_answer_that_is_an_object_is_parsed() -> None:
    assert parse_answer('{"a": 1}') == {"a": 1}
    assert unreadable_answer("it is odd").code == "unreadable-answer"


@pytest.mark.parametrize("text", ["{not json", "[1]", "[" * 100_000, "null", "", "9" * 5000])
def test_answer_that_is_no_object_stays_text(text: str) -> None:
    assert parse_answer(text) == text
    with pytest.raises(UnreadableError, match="not a JSON object"):
        Fields.of(text)


def test_fields_have_their_types() -> None:
    facts = Fields.of({"t": "a\ud800", "f": True, "i": 3, "n": 1, "ts": ["x"], "is": [1, 2], "o": {}, "os": [{}]})
    assert (facts.text("t"), facts.flag("f"), facts.integer("i"), facts.number("n")) == ("a?", True, 3, 1.0)
    assert (facts.texts("ts"), facts.integers("is")) == (("x",), (1, 2))
    assert (facts.object("o"), facts.objects("os")) == (Fields({}), (Fields({}),))
    assert (facts.text("none"), facts.texts("none"), facts.object("none")) == (None, (), None)


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        *(("text", 1), ("flag", 1), ("integer", True), ("integer", 1.0), ("integer", 1 << 70), ("number", "1")),
        *(("texts", "x"), ("texts", [1]), ("texts", ["x"] * 5000), ("integers", [True]), ("integers", [1 << 70])),
        *(("object", []), ("objects", [1]), ("number", 1 << 2000)),
    ],
)
def test_field_of_another_type_is_unreadable(reader: str, value: object) -> None:
    with pytest.raises(UnreadableError):
        getattr(Fields({"x": value}), reader)("x")
    with pytest.raises(UnreadableError, match="it has no 'x'"):
        required("x", None)


@given(JSON)
def test_no_value_raises_anything_else(value: Any) -> None:
    for reader in ("text", "flag", "integer", "number", "texts", "integers", "object", "objects"):
        try:
            getattr(Fields({"x": value}), reader)("x")
        except UnreadableError:
            continue


def test_forged_answers_are_read_without_an_exception() -> None:
    assert [type(parse_answer(text)) for text in FORGED].count(dict) == 2
