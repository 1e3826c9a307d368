"""Enumerations of strings."""

from __future__ import annotations

from enum import Enum


class StrEnum(str, Enum):
    """A member is its string, also when formatted, as in the standard library since Python 3.11."""

    __str__ = str.__str__
