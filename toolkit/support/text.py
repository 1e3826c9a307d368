"""Text for users: quoting, near matches, and the refusal of control characters."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import unicodedata
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Letters and marks that are invisible; the format characters have a category of their own (Cf).
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
# The C1 controls, and the Bidi_Control characters of Unicode, which show text in another order than it is read in.
_HIDDEN_CONTROL = re.compile("[\x80-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"
_MAX_SHOWN = 500  # characters
# Words of this length can be misspelt in so many letters; shorter ones are close to too many others.
_MIN_LENGTHS = {1: 5, 2: 9}
_NO_DIGITS = str.maketrans("", "", "0123456789")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """' Did you mean "base"?' with its leading space, or nothing."""
    match = nearest(word, known)
    return f' Did you mean "{match}"?' if match else ""


def misspelt(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` is a misspelling of: one letter off, two in a long word. None: it is close to none."""
    for limit in (1, 2):
        for right in sorted(known):
            long_enough = len(right) >= _MIN_LENGTHS[limit] and (limit == 1 or word[:1] == right[:1])
            # Names that differ in their digits alone are other releases, not misspellings.
            if long_enough and _differs(word, right) and edit_distance(word, right, limit) <= limit:
                return right
    return None


def _differs(word: str, other: str) -> bool:
    return word.translate(_NO_DIGITS) != other.translate(_NO_DIGITS)


def edit_distance(word: str, other: str, limit: int) -> int:
    """How many letters were changed, left out, added, or exchanged with their neighbour; more than `limit` is inexact.

    https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance, the optimal string alignment.
    """
    if abs(len(word) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        costs = [row]
        for column, right in enumerate(other, 1):
            cost = min(last[column] + 1, costs[-1] + 1, last[column - 1] + (letter != right))
            if row > 1 and column > 1 and (letter, word[row - 2]) == (other[column - 2], right):
                cost = min(cost, before[column - 2] + 1)
            costs.append(cost)
        before, last = last, costs
    return last[-1]


def one_line(value: str, what: str) -> str:
    """Return `value`; raise WrongInput if it contains a control character (newline, escape, NUL, ...).

    `what` names the value in the message. Line and paragraph separators count, since editors break lines at them.
    """
    for character in value:
        if unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs"):
            raise WrongInput(f"{what} contains the control character {character!r}: {value!r}")
    return value


def has_hidden_control(text: str) -> bool:
    """Whether `text` has a C1 control or a bidirectional mark: both are valid TOML, and lie to who reads it."""
    return _HIDDEN_CONTROL.search(text) is not None


def escape_hidden_controls(text: str) -> str:
    """`text` with `\\u202e` for such a character, as a TOML string in double quotes may have it."""
    return _HIDDEN_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def part_braces(quoted: str) -> str:
    """A word in the shell's single quotes without two adjacent braces, which mark a build argument's name."""
    return re.sub(r"(?<=\{)\{|(?<=\})\}", r"''\g<0>", quoted)


def path_argument(path: Path | str) -> str:
    """`path` as an argument of a command: one that begins with a dash would be read as an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def count(number: int, singular: str, plural: str | None = None) -> str:
    """count(1, 'node') -> '1 node'; count(2, 'node') -> '2 nodes'."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def shorten(text: str) -> str:
    """`text`, or its beginning if it is longer than anything that a user would read in a message."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def printable(text: str, *, keep: str = "") -> str:
    """`text` with an escape such as `\\x1b` for every character that a terminal interprets or does not show.

    Those are control and format characters (bidirectional overrides, zero widths), line separators, surrogates and
    unassigned characters. Letters of any script, spaces of any width and emoji are kept. `keep` has the control
    characters to keep, such as a newline.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character in keep or _is_shown(text, place) else ascii(character)[1:-1]
        for place, character in enumerate(text)
    )


def _is_shown(text: str, place: int) -> bool:
    character = text[place]
    if character == _JOINER:  # it joins two emoji into one
        return _is_emoji(text[place - 1 : place]) and _is_emoji(text[place + 1 : place + 2])
    # Python treats non-ASCII spaces as unprintable; Japanese text uses U+3000.
    return (character.isprintable() or unicodedata.category(character) == "Zs") and character not in _INVISIBLE


def _is_emoji(character: str) -> bool:
    return character == _EMOJI_STYLE or (character != "" and unicodedata.category(character) in ("So", "Sk"))


def visible_word(word: str) -> str:
    """`word` quoted for a shell; as `$'…'`, which bash and zsh read, if it is not printable."""
    if printable(word) == word:
        return shlex.quote(word)
    return "$'" + "".join(map(_ansi_c, word)) + "'"


def _ansi_c(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if printable(character) == character:
        return character
    encoding = os.fsencode(character) if "\udc80" <= character <= "\udcff" else character.encode(errors="replace")
    return "".join(f"\\x{byte:02x}" for byte in encoding)
