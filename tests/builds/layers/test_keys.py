"""Keys of layers: any change of what decides a layer changes its key."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.builds.layers import keys
from toolkit.builds.layers.keys import InputContent, MadeWith, first_key, step_key
from toolkit.store.entries import is_key

if TYPE_CHECKING:
    from collections.abc import Callable

MADE_WITH = MadeWith("x86_64", "apptainer 1.4.5", "4.5.1", "zstd")
# Scripts and paths may hold bytes that are not UTF-8.
TEXTS = st.text(st.characters(exclude_categories=("Cs",)) | st.just("\udcff"), max_size=8)
INPUTS = st.lists(st.builds(InputContent, TEXTS, TEXTS, TEXTS), max_size=3)
STEPS = st.tuples(TEXTS, TEXTS, INPUTS, st.none() | TEXTS)


def key_of(step: tuple[str, str, list[InputContent], str | None]) -> str:
    before, script, inputs, installer = step
    return step_key(before, script, inputs, installer=installer)


@given(STEPS, STEPS)
def test_step_key_differs_if_anything_does(one: tuple, other: tuple) -> None:  # type: ignore[type-arg]
    assert (key_of(one) == key_of(other)) == (one == other)
    assert is_key(key_of(one))


@given(st.lists(TEXTS, min_size=5, max_size=5), st.lists(TEXTS, min_size=5, max_size=5), TEXTS, TEXTS)
def test_first_key_differs_if_anything_does(one: list[str], other: list[str], base: str, moved: str) -> None:
    assert first_key(base, MadeWith(*one)) == first_key(base, MadeWith(*one))
    assert (first_key(base, MadeWith(*one)) == first_key(moved, MadeWith(*other))) == ((base, one) == (moved, other))


@given(TEXTS, TEXTS, TEXTS)
@examples(50)
def test_text_that_moves_to_the_next_part_changes_the_key(before: str, script: str, moved: str) -> None:
    assume(moved)
    assert step_key(before + moved, script) != step_key(before, moved + script)
    inputs = [InputContent(moved, "", script)]
    assert step_key(before, script, inputs) != step_key(before, script, [InputContent("", moved, script)])
    assert step_key(before, script, inputs) != step_key(before, script + moved, [InputContent("", "", script)])
    assert step_key(before, "", installer=moved) != step_key(before, moved)


@pytest.mark.parametrize("field", [field.name for field in fields(MadeWith)])
def test_each_tool_is_in_the_first_key(field: str) -> None:
    assert first_key("sha256:1", replace(MADE_WITH, **{field: "another"})) != first_key("sha256:1", MADE_WITH)


def test_change_in_one_step_changes_all_later_keys_and_no_earlier_one() -> None:
    def chain(scripts: list[str]) -> list[str]:
        made = [first_key("sha256:1", MADE_WITH)]
        for script in scripts:
            made.append(step_key(made[-1], script))
        return made

    one, other = chain(["a", "b", "c"]), chain(["a", "x", "c"])
    assert [before == after for before, after in zip(one, other, strict=True)] == [True, True, False, False]


def test_another_layer_format_changes_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    make: Callable[[], str] = lambda: first_key("sha256:1", MADE_WITH)  # noqa: E731
    before = make()
    monkeypatch.setattr(keys, "LAYER_FORMAT", keys.LAYER_FORMAT + 1)
    assert make() != before
