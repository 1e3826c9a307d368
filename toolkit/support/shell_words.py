"""Split shell text into commands and their words, also text that no shell would accept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_SUBSTITUTION = 5_000  # characters of a `$(…)`
_SEPARATORS = " \t\r\n;|&()<>"


def commands_in(text: str) -> list[list[str]]:
    """The commands of shell text, each as its words without quotes. Text that is none gives words of some kind.

    Not shlex: a script has comments with one quote, here-documents and code of other languages, and must not fail.
    """
    commands: list[list[str]] = [[]]
    word: list[str] = []  # parts; one may be empty

    def end(*, command: bool) -> None:
        if word:
            commands[-1].append("".join(word))
            word.clear()
        if command and commands[-1]:
            commands.append([])

    place = 0
    while place < len(text):
        char = text[place]
        if char == "\\" and place + 1 < len(text):
            place += 1
            if text[place] != "\n":
                word.append(text[place])
        elif char in "\"'" and (close := _close_of(text, place)) >= 0:
            ansi = char == "'" and word[-1:] == ["$"]
            if ansi:
                word.pop()
            word.append(_plain(text[place + 1 : close], char, ansi=ansi))
            place = close
        elif char == "$" and text[place + 1 : place + 2] in ("(", "{"):
            close = _end_of_substitution(text, place + 1)
            word.append(text[place : close + 1])
            place = close
        elif char in _SEPARATORS:
            end(command=char not in " \t")
        else:
            word.append(char)
        place += 1
    end(command=True)
    return [command for command in commands if command]


def _close_of(text: str, place: int) -> int:
    quote = text[place]
    if quote == "'":
        return text.find(quote, place + 1)
    found = re.compile(r"(?:[^\"\\]|\\.)*\"", re.DOTALL).match(text, place + 1)
    return found.end() - 1 if found else -1


def _plain(inner: str, quote: str, *, ansi: bool) -> str:
    if ansi:
        simple: Callable[[re.Match[str]], str] = lambda match: chr(int(match[1], 16))  # noqa: E731
        return re.sub(r"\\x([0-9A-Fa-f]{1,2})", simple, inner)
    return re.sub(r"\\([\"\\$`\n])", r"\1", inner) if quote == '"' else inner


def _end_of_substitution(text: str, place: int) -> int:
    """Where the `$(…)` or `${…}` that opens at `place` ends; the end of the line if it does not."""
    opening, closing, depth = text[place], ")" if text[place] == "(" else "}", 0
    for at in range(place, min(len(text), place + _MAX_SUBSTITUTION)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at
    return len(text) - 1
