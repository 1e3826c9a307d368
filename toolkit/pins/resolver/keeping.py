"""Keep as many preferred versions as possible.

uv has no preferences beside an installed environment, so they are passed as constraints. If all of them together leave
no solution, the packages that its explanation names are released, and then taken back one by one where they fit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.pins.resolver.question import Answer, UnreadableSource, ask

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from toolkit.pins.index.uv import Uv
    from toolkit.pins.resolver.constraints import Constraint
    from toolkit.pins.resolver.question import Question

    Prove = Callable[[Sequence[str]], str | None]  # why there is no solution with these pins; None if there is one


def keep_preferred(uv: Uv, question: Question, pins: Sequence[str], direct: Collection[str]) -> tuple[Question, Answer]:
    """The answer to a question that has one, with as many of `pins` as possible; `direct` as for `keep_most`."""

    def under(some: Sequence[str]) -> Question:
        return question.under([*question.constraints, *some])

    kept = under(keep_most(pins, direct, lambda some: ask_preferring(uv, under(some), again=True).proof))
    return kept, ask(uv, kept)  # the cache alone may lack the newest releases of what has no pin


def ask_preferring(uv: Uv, question: Question, *, fresh: bool = False, again: bool = False) -> Answer:
    """As `ask`; pins for which this host would have to read a release that it cannot read are like pins that conflict.

    Such a release need not be one of the pins: uv tries ever older ones of other packages, which without these pins it
    never reaches. UnreadableSource is raised for a pin that may be read otherwise (`sources.source_metadata`).
    """
    try:
        return ask(uv, question, fresh=fresh, again=again)
    except UnreadableSource as error:
        known = {(found.name, found.version) for found in question.metadata}
        may_be_read = error.missing_module is not None and (error.name, error.version) not in known
        if may_be_read and error.pin in question.constraints:
            raise
        return Answer({}, {}, proof=error.message)


def first_of_each(pins: Iterable[str]) -> list[str]:
    """The most wanted pin (`name==version`) of each package: the first one."""
    found: dict[str, str] = {}
    for pin in pins:
        found.setdefault(name_of(pin), pin)
    return list(found.values())


def is_refused(pin: str, constraints: Iterable[Constraint]) -> bool:
    """Whether one of `constraints` refuses `name==version`; not for a bound."""
    name, _, version = pin.partition("==")
    return bool(version) and any(
        constraint.name == name and not satisfies(version, constraint.specifier) for constraint in constraints
    )


def keep_most(pins: Sequence[str], direct: Collection[str], prove: Prove) -> list[str]:
    """As many of `pins` as have a solution together, one for a package at most.

    Packages in `direct` come before the others, earlier pins of a package before later ones. Without any of them there
    is a solution. Each pin that is left out has none with those that are kept.
    """
    kept: list[str] = []
    for is_direct in (True, False):
        left = [pin for pin in pins if (name_of(pin) in direct) is is_direct]
        while left:
            tried = first_of_each(left)
            kept = _with_most(kept, tried, prove)
            done = {*tried, *(pin for pin in left if name_of(pin) in {name_of(found) for found in kept})}
            left = [pin for pin in left if pin not in done]
    return kept


def name_of(pin: str) -> str:
    """The package of `name==version`, or of a bound."""
    return re.split("[=<>!~]", pin, maxsplit=1)[0]


def _with_most(kept: list[str], pins: list[str], prove: Prove) -> list[str]:
    """`kept`, and as many of `pins` as there is a solution for."""
    fitting, suspects = list(pins), []
    while fitting and (proof := prove([*kept, *fitting])) is not None:
        named = [
            pin for pin in fitting if re.search(rf"(?<![\w.-]){re.escape(name_of(pin))}(?![\w-])", proof)
        ] or fitting
        suspects += named
        fitting = [pin for pin in fitting if pin not in named]
    return _taken_back([*kept, *fitting], sorted(suspects, key=pins.index), prove)


def _taken_back(kept: list[str], pins: list[str], prove: Prove) -> list[str]:
    """`kept`, and of `pins`, which have no solution together, each that has one with those before it."""
    if len(pins) <= 1:
        return kept if not pins or prove([*kept, *pins]) is not None else [*kept, *pins]
    middle = len(pins) // 2
    for half in (pins[:middle], pins[middle:]):
        whole = [*kept, *half]
        kept = whole if len(half) > 1 and prove(whole) is None else _taken_back(kept, half, prove)
    return kept
