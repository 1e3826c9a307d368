"""As many preferred versions as possible, with a resolver made of plain values."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pins.python_targets import target
from toolkit.pins.index.uv import Uv
from toolkit.pins.resolver import keeping
from toolkit.pins.resolver.keeping import ask_preferring, first_of_each, keep_most, name_of
from toolkit.pins.resolver.question import Answer, Metadata, Question, UnreadableSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PINS = [f"p{number}=={version}" for number in range(9) for version in (2, 1)]
conflicts = st.lists(st.sets(st.sampled_from(PINS), min_size=1, max_size=3), max_size=6)


def proof_of(some: Sequence[str], forbidden: list[set[str]]) -> str | None:
    """Why there is no solution, as uv says it: with the names of one conflict."""
    twice = [{one, other} for one, other in combinations(some, 2) if name_of(one) == name_of(other)]
    found = next((names for names in (*twice, *forbidden) if names <= set(some)), None)
    return None if found is None else " and ".join(f"you require {pin}" for pin in sorted(found))


@given(conflicts, st.sets(st.sampled_from([name_of(pin) for pin in PINS])))
def test_nothing_is_left_out_that_fits(forbidden: list[set[str]], direct: set[str]) -> None:
    kept = keep_most(PINS, direct, lambda some: proof_of(some, forbidden))
    assert proof_of(kept, forbidden) is None
    for pin in PINS:
        if name_of(pin) not in map(name_of, kept):
            assert proof_of([*kept, pin], forbidden) is not None, pin


@given(st.sets(st.sampled_from(PINS), min_size=2, max_size=2).filter(lambda pair: len({*map(name_of, pair)}) == 2))
def test_direct_package_comes_before_its_dependencies(pair: set[str]) -> None:
    first = min(pair)
    kept = keep_most(PINS, {name_of(first)}, lambda some: proof_of(some, [pair]))
    assert first_of_each(pin for pin in PINS if name_of(pin) == name_of(first))[0] in kept
    assert len(kept) == 9


def test_one_conflict_among_many_is_found_with_few_questions() -> None:
    pins = [f"p{number}==1" for number in range(200)]
    asked: list[int] = []

    def prove(some: Sequence[str]) -> str | None:
        asked.append(len(some))
        return proof_of(some, [{"p17==1", "p150==1"}])

    assert keep_most(pins, {"p17"}, prove) == ["p17==1", *(pin for pin in pins if pin not in ("p17==1", "p150==1"))]
    assert len(asked) <= 6


def test_conflict_that_names_no_pin_is_found_too() -> None:
    pins = [f"p{number}==1" for number in range(16)]

    def prove(some: Sequence[str]) -> str | None:
        return re.sub(r"p\d+", "it", proof_of(some, [{"p3==1", "p9==1"}]) or "") or None

    assert keep_most(pins, (), prove) == [pin for pin in pins if pin != "p9==1"]


def unreadable(lines: str) -> UnreadableSource:
    return UnreadableSource("pydot", "1.1.0", (lines,))


@pytest.mark.parametrize(
    ("error", "pin", "metadata"),
    [
        (unreadable("SyntaxError"), "idna==3.20", ()),  # uv went back to an old release of another package
        (unreadable("ModuleNotFoundError: No module named 'pyparsing'"), "idna==3.20", ()),
        (unreadable("SyntaxError"), "pydot==1.1.0", ()),
        (unreadable("ModuleNotFoundError: No module named 'x'"), "pydot==1.1.0", (Metadata("pydot", "1.1.0"),)),
    ],
)
def test_pins_that_lead_to_a_release_that_cannot_be_read_do_not_fit(
    error: UnreadableSource, pin: str, metadata: tuple[Metadata, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = asked(Question(target(), ("pydot",), (pin,), metadata=metadata), error, tmp_path, monkeypatch)
    assert answer.proof == "the requirements of pydot 1.1.0 cannot be read on this host"


def test_pin_that_may_be_read_otherwise_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = unreadable("ModuleNotFoundError: No module named 'torch'")
    with pytest.raises(UnreadableSource):
        asked(Question(target(), ("pydot",), ("pydot==1.1.0",)), error, tmp_path, monkeypatch)


def asked(question: Question, error: Exception, area: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    def ask(*_: object, **__: object) -> Answer:
        raise error

    monkeypatch.setattr(keeping, "ask", ask)
    return ask_preferring(Uv("uv", area, area), question)
