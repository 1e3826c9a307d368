"""Quoting for bash: user text reaches the program unchanged, and the script stays readable."""

from __future__ import annotations

import os
import re

_BARE = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")
# Printable, and without what makes a reader (or shellcheck) ask whether something was to be expanded.
_PLAIN = re.compile(r"[ -~\n]*")
_DOUBTFUL = re.compile(r"[$`'\\~]")


def quoted(word: str) -> str:
    """`word` as bash reads it back: bare, in '…', or in $'…' if it contains characters that are easily misread."""
    if _BARE.fullmatch(word):
        return word
    if (_PLAIN.fullmatch(word) and not _DOUBTFUL.search(word)) or _is_text(word):
        return f"'{word}'"
    return "$'" + "".join(map(_escaped, _as_bytes(word))) + "'"


def _is_text(word: str) -> bool:
    """Letters of any language, without control characters, quotation marks or others that are special to bash or an
    editor."""
    return all(character.isalnum() or character in " -_.,:;=+/@%#()[]{}" for character in word)


def _as_bytes(word: str) -> bytes:
    # An argument that is no UTF-8 came in with surrogates (PEP 383) and leaves as the same bytes.
    return os.fsencode(word) if any("\ud800" <= character <= "\udfff" for character in word) else word.encode()


def _escaped(byte: int) -> str:
    character = chr(byte)
    if character in "\\'":
        return "\\" + character
    return character if character == "\n" or " " <= character <= "~" else f"\\x{byte:02x}"
