"""Digests that cannot be those of an image, and the others."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.recipes.digests import DIGEST, invented

HEXADECIMAL = "0123456789abcdef"
DIGITS = hashlib.sha256(b"a real image").hexdigest()


@given(st.text(HEXADECIMAL, min_size=1, max_size=32))
def test_invented_digest_of_a_repeated_pattern_is_refused(pattern: str) -> None:
    reason = invented(f"sha256:{(pattern * 64)[:64]}")
    assert reason is not None
    assert "a placeholder" in reason


WORDS = ("", "test", "hello", "hello world", "foo", "bar", "digest", "image", "example", "latest", "0", "1", "a")


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("word", WORDS)
def test_invented_digest_of_a_word_is_refused(word: str, end: str) -> None:
    reason = invented(f"sha256:{hashlib.sha256((word + end).encode()).hexdigest()}")
    assert reason == f'is the SHA-256 of the text "{word}": a placeholder, not the digest of an image'


@pytest.mark.parametrize("start", ["3df6d5b7c8b1", "a6d2b38300ce017add71440577d5b0a90460d269d9b7"])
def test_invented_digest_that_was_published_is_refused(start: str) -> None:
    assert invented(f"sha256:{(start + DIGITS)[:64]}") == "is a published digest that no registry ever gave"


@given(st.binary(min_size=20))
def test_invented_says_nothing_of_a_digest_like_any_other(content: bytes) -> None:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert DIGEST.fullmatch(digest)
    assert invented(digest) is None


def test_real_digest_of_ubuntu_is_not_taken_for_the_fiction_with_its_beginning() -> None:
    assert invented("sha256:a6d2b38300ce017add71440577d5b0a90460d0e57fd7aec21dd0d1b0761bbfb2") is None
