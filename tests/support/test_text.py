"""Text from others as a terminal may get it: what is escaped, what stays, and words that a shell reads back."""

from __future__ import annotations

import os
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.text import HOSTILE, is_harmless
from toolkit.support.errors import WrongInput
from toolkit.support.text import (
    count,
    did_you_mean,
    edit_distance,
    escape_hidden_controls,
    has_hidden_control,
    misspelt,
    nearest,
    one_line,
    path_argument,
    printable,
    visible_word,
)

_MARKS = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")


@pytest.mark.parametrize(
    "text",
    [
        "今日は　世界",
        "naïve café e\u0301",
        "no\u00a0break",
        "👍 👩‍💻 ❤️ 👨🏽‍🚀 🏳️‍🌈",
        "葛\U000e0100",
        "שלום",
        "[bold]x[/] {} \\x1b",
    ],
)
def test_text_of_any_language_stays(text: str) -> None:
    assert printable(text) == text


@given(st.text(st.characters() | st.sampled_from("\x9b\u202e\u200f\u061c\u2066")))
def test_hidden_controls_are_escaped_and_all_else_stays(text: str) -> None:
    escaped = escape_hidden_controls(text)
    assert not has_hidden_control(escaped)
    assert (escaped == text) == (not has_hidden_control(text))
    assert has_hidden_control(text) == any(
        "\x80" <= character <= "\x9f"
        or unicodedata.bidirectional(character) in _MARKS
        or character in "\u061c\u200e\u200f"
        for character in text
    )


@pytest.mark.parametrize("character", [*"\x00\x07\x08\t\n\r\x1b\x7f\x85\x9b\xad\u061c\u115f\u200b\u200c\u200d\u200e"])
def test_what_is_not_seen_or_is_obeyed_is_escaped(character: str) -> None:
    assert printable(f"a{character}b") == f"a{ascii(character)[1:-1]}b"


@pytest.mark.parametrize("number", [*range(0x202A, 0x202F), *range(0x2060, 0x206A), 0x2028, 0xFEFF, 0xDC80, 0xE0041])
def test_overrides_and_their_kin_are_escaped(number: int) -> None:
    assert printable(f"a{chr(number)}b").isascii()


@given(HOSTILE)
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    shown = printable(text)
    assert is_harmless(shown)
    assert printable(shown) == shown
    assert [character for character in printable(text, keep="\n\t") if unicodedata.category(character) == "Cc"] == [
        character for character in text if character in "\n\t"
    ]


@examples(60)
@given(HOSTILE.filter(lambda text: "\0" not in text))
def test_bash_reads_a_visible_word_back(text: str) -> None:
    word = visible_word(text)
    assert is_harmless(word)
    try:
        expected = os.fsencode(text)
    except UnicodeEncodeError:  # no file can have such a name
        return
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout == expected


def test_the_nearest_word_is_offered_and_a_far_one_is_not() -> None:
    assert nearest("pytroch", ["pytorch", "jax"]) == "pytorch"
    assert nearest("banana", ["pytorch", "jax"]) is None
    assert did_you_mean("jaxx", ["jax"]) == ' Did you mean "jax"?'
    assert did_you_mean("banana", ["jax"]) == ""


def test_letters_that_differ_are_counted() -> None:
    pairs = [
        ("scipy", "scipy", 0),
        ("scpy", "scipy", 1),
        ("sicpy", "scipy", 1),
        ("pandsa", "pandas", 1),
        ("ab", "cd", 2),
    ]
    assert [edit_distance(word, other, 2) for word, other, _ in pairs] == [expected for *_, expected in pairs]
    assert edit_distance("a", "abcdef", 2) > 2


def test_a_long_word_may_have_two_wrong_letters_and_a_short_one_none() -> None:
    assert misspelt("tnesorflw", ["tensorflow"]) == "tensorflow"
    assert misspelt("nzmqy", ["numpy"]) is None
    assert misspelt("joblyb2", ["joblib"]) is None
    assert misspelt("joblib2", ["joblib"]) is None
    assert misspelt("ruch", ["rich"]) is None


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\x1b[31m", "a\0", "\u2028", "\x85", "\udcff"])
def test_what_breaks_a_line_is_refused(text: str) -> None:
    with pytest.raises(WrongInput) as caught:
        one_line(text, "the value")
    assert caught.value.message.isprintable()


def test_ordinary_text_passes() -> None:
    assert one_line("日本 é 'quotes' --dash", "x") == "日本 é 'quotes' --dash"


def test_a_path_is_never_taken_for_an_option() -> None:
    assert [path_argument(Path(path)) for path in ("-x.sif", "./-x", "a/-x", "a b")] == [
        "./-x.sif",
        "./-x",
        "a/-x",
        "a b",
    ]


def test_count_with_singular_and_plural() -> None:
    assert [count(number, "GPU") for number in (0, 1, 2)] == ["0 GPUs", "1 GPU", "2 GPUs"]
    assert count(2, "library", "libraries") == "2 libraries"
