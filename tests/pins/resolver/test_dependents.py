"""Which package requires which."""

from __future__ import annotations

from toolkit.pins.lock.model import RECIPE
from toolkit.pins.resolver.dependents import closure, needed

EDGES = {"pandas": {RECIPE}, "numpy": {"pandas"}, "left": {"gone"}, "a": {"b", "numpy"}, "b": {"a"}}


def test_closure_has_all_that_is_required_even_in_a_circle() -> None:
    assert closure(EDGES, ["Pandas>=2"]) == {"pandas", "numpy", "a", "b"}
    assert closure(EDGES, []) == frozenset()


def test_needed_is_what_the_recipe_leads_to() -> None:
    assert needed(EDGES) == {"pandas", "numpy", "a", "b"}
