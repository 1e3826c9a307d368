"""Numbers in what a scheduler's programs print, which may be anything: of ASCII digits, and at most 64 bits long."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"-?[0-9]{1,18}(?![0-9])")
_DECIMAL = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")


def whole(text: object) -> int | None:
    """The whole number that `text` is, else None."""
    match = _WHOLE.fullmatch(str(text))
    return int(match[0]) if match else None


def leading(text: object) -> int | None:
    """The whole number at the beginning of `text`, else None."""
    match = _WHOLE.match(str(text))
    return int(match[0]) if match else None


def decimal(text: object) -> float | None:
    """The number without a sign that `text` is, else None."""
    match = _DECIMAL.fullmatch(str(text))
    return float(match[0]) if match else None
