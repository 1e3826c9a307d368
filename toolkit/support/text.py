"""Words for people: quoting, near matches, and the refusal of what cannot stand on one line."""

from __future__ import annotations

import difflib
import unicodedata
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """' Did you mean "base"?' with its leading space, or nothing."""
    match = nearest(word, known)
    return f' Did you mean "{match}"?' if match else ""


def one_line(value: str, what: str) -> str:
    """Return `value`; raise WrongInput where it holds a control character (newline, escape, NUL, ...).

    `what` names the value in the message. Line and paragraph separators count, since editors break lines at them.
    """
    for character in value:
        if unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs"):
            raise WrongInput(f"{what} holds the control character {character!r}: {value!r}")
    return value


def path_argument(path: Path | str) -> str:
    """`path` as an argument of a command: one that begins with a dash would be read as an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def count(number: int, singular: str, plural: str | None = None) -> str:
    """count(1, 'node') -> '1 node'; count(2, 'node') -> '2 nodes'."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
