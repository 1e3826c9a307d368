"""Digests of images: their form, and the marks of one that was invented."""

from __future__ import annotations

import hashlib
import re

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

# Digests of these are placeholders in test fixtures, such as sha256("test") as that of an image of NVIDIA.
_WORDS = ("", "test", "hello", "hello world", "foo", "bar", "digest", "image", "example", "latest", "0", "1", "a")
_PLACEHOLDERS = {hashlib.sha256((word + end).encode()).hexdigest(): word for word in _WORDS for end in ("", "\n")}
# Beginnings of digests that were published and never resolved (read 2026-11-21): that of NVIDIA's pytorch 24.03 in a
# simulator of a terminal, and one of ubuntu:22.04 in a guide, of which only the first 37 digits are the image's.
_FICTIONS = ("3df6d5b7c8b1", "a6d2b38300ce017add71440577d5b0a90460d269d9b7")
# The longest pattern whose repetition cannot be chance: a digest repeats 32 digits once in 16^32.
_LONGEST_PATTERN = 32


def invented(digest: str) -> str | None:
    """Why `digest` (`sha256:…`) cannot be that of an image; None if nothing is known against it."""
    digits = digest.removeprefix("sha256:")
    for length in range(1, _LONGEST_PATTERN + 1):
        pattern = digits[:length]
        if (pattern * (len(digits) // length + 1))[: len(digits)] == digits:
            return f"repeats {pattern}: a placeholder, not the digest of an image"
    if digits in _PLACEHOLDERS:
        return f'is the SHA-256 of the text "{_PLACEHOLDERS[digits]}": a placeholder, not the digest of an image'
    if digits.startswith(_FICTIONS):
        return "is a published digest that no registry ever gave"
    return None
