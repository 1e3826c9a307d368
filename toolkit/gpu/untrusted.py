"""Read an answer from a container, field by field: any program of the image can print one, of any shape."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from toolkit.support.findings import Finding, Severity

_MAX_NUMBER = 1 << 64  # the largest that the driver gives is an unsigned long long
_MAX_TEXT = 64 << 10
_MAX_LIST = 1024

_Value = TypeVar("_Value")


class UnreadableError(ValueError):
    """An answer whose shape or types are not those of ctk's programs."""


def parse_answer(text: str) -> dict[str, Any] | str:
    """The JSON object that the text is; the text itself if it is none."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):  # ValueError: also an integer of more digits than Python reads
        return text
    return facts if isinstance(facts, dict) else text


def unreadable_answer(reason: str) -> Finding:
    """The finding about such an answer."""
    return Finding(
        "unreadable-answer",
        Severity.ERROR,
        f"The answer of ctk's program in the container cannot be read: {reason}.",
        "Something in the image changes what its Python prints: look at its python3 and its sitecustomize.py.",
    )


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one JSON object. A field that is missing or null is None; one of another type raises."""

    facts: dict[str, Any]

    @classmethod
    def of(cls, value: object) -> Fields:
        """Raises UnreadableError unless `value` is an object."""
        if not isinstance(value, dict):
            raise UnreadableError("it is not a JSON object")
        return cls(value)

    def text(self, name: str) -> str | None:
        value = self._value(name, str)
        return None if value is None else _clean(value)

    def flag(self, name: str) -> bool | None:
        value: bool | None = self._value(name, bool)
        return value

    def integer(self, name: str) -> int | None:
        value: int | None = self._value(name, int)
        return None if value is None else _bounded(name, value)

    def number(self, name: str) -> float | None:
        """Any float that JSON's readers know, also those that are not finite."""
        value: float | None = self._value(name, int, float)
        return None if value is None else float(_bounded(name, value) if isinstance(value, int) else value)

    def texts(self, name: str) -> tuple[str, ...]:
        items = self._items(name)
        if not all(isinstance(item, str) for item in items):
            raise _of_another_type(name)
        return tuple(map(_clean, items))

    def integers(self, name: str) -> tuple[int, ...]:
        items = self._items(name)
        if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            raise _of_another_type(name)
        return tuple(_bounded(name, item) for item in items)

    def objects(self, name: str) -> tuple[Fields, ...]:
        return tuple(map(Fields.of, self._items(name)))

    def object(self, name: str) -> Fields | None:
        value = self._value(name, dict)
        return None if value is None else Fields(value)

    def _items(self, name: str) -> list[Any]:
        items: list[Any] = self._value(name, list) or []
        if len(items) > _MAX_LIST:
            raise UnreadableError(f"its {name!r} has {len(items)} items")
        return items

    def _value(self, name: str, *types: type) -> Any:
        value = self.facts.get(name)
        if value is None:
            return None
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise _of_another_type(name)
        return value


def required(name: str, value: _Value | None) -> _Value:
    """The value of a field that every answer has."""
    if value is None:
        raise UnreadableError(f"it has no {name!r}")
    return value


def _clean(text: str) -> str:
    """Without lone surrogates, which JSON can spell and UTF-8 cannot."""
    return text[:_MAX_TEXT].encode("utf-8", "replace").decode()


def _bounded(name: str, value: int) -> int:
    if abs(value) > _MAX_NUMBER:
        raise UnreadableError(f"its {name!r} is out of range")
    return value


def _of_another_type(name: str) -> UnreadableError:
    return UnreadableError(f"its {name!r} is of another type")
