"""Digests of images: their form, and the marks of one that was invented."""

from __future__ import annotations

import re

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

# The first digits of the SHA-256 of words, alone and with a newline, which are placeholders in test fixtures, such as
# that of "test" for an image of NVIDIA. Written out: OpenSSL takes longer to load than all bases to read.
_PLACEHOLDERS = {
    "e3b0c44298fc1c14": "", "01ba4719c80b6fe9": "",
    "9f86d081884c7d65": "test", "f2ca1bb6c7e907d0": "test",
    "2cf24dba5fb0a30e": "hello", "5891b5b522d5df08": "hello",
    "b94d27b9934d3e08": "hello world", "a948904f2f0f479b": "hello world",
    "2c26b46b68ffc68f": "foo", "b5bb9d8014a0f9b1": "foo",
    "fcde2b2edba56bf4": "bar", "7d865e959b246691": "bar",
    "0bf474896363505e": "digest", "fdd33d7bf8cc80f2": "digest",
    "6105d6cc76af4003": "image", "254eddf15d9534e3": "image",
    "50d858e0985ecc7f": "example", "13550350a8681c84": "example",
    "5e1e2bcac305958b": "latest", "715760eedeabb0ca": "latest",
    "5feceb66ffc86f38": "0", "9a271f2a916b0b6e": "0",
    "6b86b273ff34fce1": "1", "4355a46b19d348dc": "1",
    "ca978112ca1bbdca": "a", "87428fc522803d31": "a",
}  # fmt: skip
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
    if (word := _PLACEHOLDERS.get(digits[:16])) is not None:
        return f'is the SHA-256 of the text "{word}": a placeholder, not the digest of an image'
    if digits.startswith(_FICTIONS):
        return "is a published digest that no registry ever gave"
    return None
