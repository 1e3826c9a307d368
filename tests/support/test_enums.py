"""Enumerations whose members are texts."""

from __future__ import annotations

import json

from toolkit.support.enums import StrEnum


def test_member_of_a_str_enum_is_its_word_in_any_text() -> None:
    class Size(StrEnum):
        SMALL = "small"

    assert [f"{Size.SMALL}", f"{Size.SMALL:>6}", str(Size.SMALL), "".join(Size)] == [
        "small",
        " small",
        "small",
        "small",
    ]
    assert json.dumps({"size": Size.SMALL}) == '{"size": "small"}'
    assert {"small": 1}[Size.SMALL] == 1
    assert Size("small") is Size.SMALL
