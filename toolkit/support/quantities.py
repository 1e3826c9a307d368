"""Sizes and ages as users write them: `50G`, `30d`."""

from __future__ import annotations

import re

from toolkit.support.errors import WrongInput

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*(?:([KMGTP])(?:i?B)?|B)?", re.ASCII | re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([smhdw])", re.ASCII | re.IGNORECASE)
_LARGEST = 2**63 - 1


def parse_size(text: str, what: str = "a size") -> int:
    """Bytes: `50G`, `1.5 TiB`, `1000`. A unit is a power of 1024, as in sbatch and quota tools.

    `what` names the value in the message. Raises WrongInput.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise WrongInput(f"{what} should be a size such as 50G or 800M, not {text!r}")
    size = _times(found[1], 1 << 10 * _POWERS[(found[2] or "").upper()])
    if size > _LARGEST:
        raise WrongInput(f"{what} is too large: {text!r}")
    return size


def parse_age(text: str, what: str = "an age") -> int:
    """Seconds: `30d`, `12h`, `1.5w`. Raises WrongInput."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise WrongInput(f"{what} should be an age such as 30d, 12h or 2w, not {text!r}")
    seconds = _times(found[1], _SECONDS[found[2].lower()])
    if seconds > _LARGEST:
        raise WrongInput(f"{what} is too large: {text!r}")
    return seconds


def format_age(seconds: float) -> str:
    """90 -> '1 m', 200000 -> '2 d': the largest whole unit, at most days."""
    seconds = max(0.0, seconds)
    unit = next((unit for unit in ("d", "h", "m") if seconds >= _SECONDS[unit]), "s")
    return f"{int(seconds // _SECONDS[unit])} {unit}"


def format_seconds(seconds: float) -> str:
    """4.25 -> '4.2 s', 80 -> '1 m 20 s', 3700 -> '1 h 1 m': a time that was measured."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} m"


def _times(number: str, factor: int) -> int:
    """`number * factor` without the rounding of floating point, rounded down."""
    whole, _, fraction = number.partition(".")
    return int(whole + fraction) * factor // int(10 ** len(fraction))
