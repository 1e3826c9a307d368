"""How shell text falls into commands and words."""

from __future__ import annotations

import pytest

from toolkit.support.shell_words import commands_in


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", []),
        ("a b; c|d && e", [["a", "b"], ["c"], ["d"], ["e"]]),
        ('a \'b c\' "d \\" e" f\\ g', [["a", "b c", 'd " e', "f g"]]),
        ("a $'\\x41' $(b c) ${d:-e f}", [["a", "A", "$(b c)", "${d:-e f}"]]),
        ("a \\\nb", [["a", "b"]]),
        ("a ''", [["a", ""]]),
        ("don't $(stop", [["don't", "$(stop"]]),  # no shell accepts it
    ],
)
def test_words_lose_their_quotes(text: str, commands: list[list[str]]) -> None:
    assert commands_in(text) == commands
