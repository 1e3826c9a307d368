"""The words of a fixed set."""

from __future__ import annotations

from enum import Enum


class StrEnum(str, Enum):
    """A member is the word itself, in any text too, as in the standard library since Python 3.11."""

    __str__ = str.__str__
