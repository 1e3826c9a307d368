"""Which words hold a secret: the forms in which programs take them, and ordinary command lines that hold none."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.support.secret_words import describe, find_secret, holds_secret

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parent.parent / "data"
RANDOM = "a3F9c2E1b7D4f8A6c5B0e9D2a1F4b3C8d7E6a5F0"
# A word, one with digits, what a password generator makes, and the forms of AWS and of W&B.
VALUES = (
    "geheim",
    "s3cr3t",
    "Zx7-pQ_9",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYKEY1234567",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
)


def lines(name: str) -> list[str]:
    return [line for line in (DATA / name).read_text().splitlines() if line and not line.startswith("#")]


FORMS, ORDINARY = lines("secret_forms.txt"), lines("ordinary_lines.txt")


def filled(form: str, value: str) -> str:
    return form.replace("@S@", value).replace("@R@", RANDOM).replace("\\n", "\n")


def words_of(line: str) -> list[str]:
    """The words that a shell gives ctk; a line that only a shell understands, as `--shell` takes it, as one word."""
    if any(sign in line for sign in ("|", "<", ">", ";", "&&", "`", "\n", "$(", "$'")):
        return [line]
    try:
        return shlex.split(line)
    except ValueError:
        return [line]


def test_the_sets_are_large_enough() -> None:
    assert (len(FORMS) >= 60, len(ORDINARY) >= 200) == (True, True)


# One test for each of a set, not for each line: a thousand tests take longer than what they test.
@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in range(1, len(VALUES)))])
def test_a_secret_is_found_as_words_and_as_a_script(turn: int) -> None:
    wrong: list[tuple[str, list[str]]] = []
    for number, form in enumerate(FORMS):
        value = VALUES[(number + turn) % len(VALUES)]
        text = filled(form, value)
        for words in (words_of(text), [text], ["bash", "-c", text], ["sh", "-c", shlex.join(["bash", "-lc", text])]):
            found = find_secret(words)
            told = describe(found or "")
            if not found or value in told or RANDOM in told or find_secret(words, {found}) == found:
                wrong.append((told, words))
    assert not wrong


def test_an_ordinary_line_holds_no_secret() -> None:
    refused: list[tuple[str, list[str]]] = []
    for given_line in ORDINARY:
        line = given_line.replace("\\n", "\n") if "<<" in given_line else given_line  # a here-document
        for words in (words_of(line), [line], ["bash", "-c", line], [f"set -e\n{line}\ntrue\n"]):
            if (found := find_secret(words)) is not None:
                refused.append((found, words))
    assert not refused


WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=6)
SECRETS = st.text("abcdefghijkmnpqrstuvwyz0123456789", min_size=4, max_size=40).map(lambda text: f"S3{text}T")
NAMES = (
    "WANDB_API_KEY",
    "hf_token",
    "Db_Password",
    "trainer.logger.api_key",
    "--api-key",
    "AWS_SECRET_ACCESS_KEY",
    "apiKey",
)
QUOTES = (
    "{}",
    "'{}'",
    '"{}"',
    "\\{}",
    "''{}",
    '{}""',
)


@examples(300)
@given(
    st.sampled_from(NAMES),
    SECRETS,
    st.sampled_from(QUOTES),
    st.sampled_from((str, str.upper, str.lower)),
    st.lists(WORDS, max_size=4),
    st.lists(WORDS, max_size=4),
    st.integers(0, 3),
)
def test_a_secret_is_found_in_any_place_quotes_and_case(
    name: str, secret: str, quoted: str, case: Callable[[str], str], before: list[str], after: list[str], depth: int
) -> None:
    text = " ".join([*before, f"{case(name)}={quoted.format(secret)}", *after])
    for _ in range(depth):
        text = shlex.join(["bash", "-c", text])
    found = find_secret([text])
    assert found
    assert secret.lower() not in found.lower()


@examples(300)
@given(
    st.sampled_from(NAMES),
    st.sampled_from(
        ("$HF_TOKEN", "${HF_TOKEN}", '"$HF_TOKEN"', "$(cat ~/.token)", "`cat t`", "''", "~/.token", "<token>")
    ),
    st.lists(WORDS, max_size=4),
    st.integers(0, 3),
)
def test_a_reference_is_no_secret_in_any_quotes(name: str, value: str, before: list[str], depth: int) -> None:
    text = " ".join([*before, f"{name}={value}"])
    for _ in range(depth):
        text = shlex.join(["bash", "-c", text])
    assert find_secret([text]) is None


@pytest.mark.parametrize(
    "value",
    [
        *("$Ecret!", "$2b$12$abcdefghijklmnopqrstuv", "$apr1$salt$hashhash1", "$1$salt$hashhash1", "$HOME:geheim"),
        *("$6$rounds=5000$salt$hashhash1", "$argon2id$v=19$m=65536$salt$hash", "\\$2y$10$abcdefghijkl", "${X}geheim"),
    ],
)
def test_what_only_begins_like_a_variable_is_a_secret(value: str) -> None:
    for text in (f"PASSWORD='{value}'", f'python x.py --password "{value}"', f"git clone https://ann:{value}@host/x"):
        assert find_secret([text]), text


@pytest.mark.parametrize(
    "value", ["$X", "${X}", "$(cat t)", "`cat t`", '$(touch pwned) `id` "s3cr3t"', "$X/t", "$apr1$a$b"]
)
def test_nothing_replaces_a_variable_in_a_value(value: str) -> None:
    assert holds_secret("WANDB_API_KEY", value)
    assert not holds_secret("WANDB_DIR", value)


@examples(100)
@given(st.text(max_size=200))
def test_any_text_can_be_judged(text: str) -> None:
    find_secret([text, text[::-1]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("s/(", "s/a/", "cookies={", "a={", "expect password;send ", "x-file <(echo ", "user='a:", "identified by "),
        "$(",
        "a=b ",
        "'",
        '"',
        "key='",
        "\\",
        "${a:-",
        "x: ",
        "token ",
        "://a:b",
        "echo x | ",
        "(",
        "a=$(x ",
        "bearer ",
        "tee x",
        "cat > x\n",
        "cat <<E > x\n",
        "echo x > ",
        "--a-file echo ",
        "set_x('",
        ".login('a','",
        "a=$(a=${",
        "`",
    ],
)
def test_a_hostile_text_costs_no_time(piece: str) -> None:
    started = time.process_time()
    find_secret([piece * (20_000 // len(piece))])
    assert time.process_time() - started < 10
