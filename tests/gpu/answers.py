"""Answers as a program in a container could print them: any JSON, and answers of ctk's own programs with a change."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["\ud800", "9" * 5000, "x" * 100, 1 << 70]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FORGED = ["{not json", "{}", "[1]", "[" * 100_000, "null", '"x"', "", "9" * 5000, '{"devices": [[]], "python": "3"}']


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container in the answer with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(value, key), *places(item)]]


@st.composite
def mutations(draw: st.DrawFn, good: dict[str, Any]) -> dict[str, Any]:
    """The answer with one to three values replaced, or keys removed."""
    changed = json.loads(json.dumps(copy.deepcopy(good)))
    for _ in range(draw(st.integers(1, 3))):
        found = places(changed)
        if not found:
            break
        holder, key = draw(st.sampled_from(found))
        if draw(st.booleans()):
            holder[key] = draw(JSON)
        else:
            del holder[key]
    return changed
