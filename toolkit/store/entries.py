"""What the store keeps: an entry is one content file and `entry.json`, which says what it is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.support.enums import StrEnum

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import TypeGuard

RECORD = "entry.json"
LARGEST_RECORD = 64 << 10  # bytes
_FORMAT = 1
_KEY = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_ABOUT, _MAX_TEXT, _MAX_NAME = 32, 4096, 255


class Kind(StrEnum):
    """What an entry is for; the name of its directory in the store."""

    BASE = "bases"
    LAYER = "layers"
    PACKAGE = "packages"


@dataclass(frozen=True, slots=True)
class Entry:
    """One content file in a store.

    `key` has 64 hexadecimal digits, the hash of what the content was made from. `digest` is the `sha256:…` of the
    content, `size` its bytes. `about` says for people what it is, and may have been written by another user: print it
    with `toolkit.support.text.printable`.
    """

    kind: Kind
    key: str
    path: Path
    digest: str
    size: int
    about: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """The content of `entry.json`."""

    kind: Kind
    key: str
    file: str
    digest: str
    size: int
    about: Mapping[str, str]


def is_key(text: str) -> bool:
    """Whether `text` can be the key of an entry."""
    return _KEY.fullmatch(text) is not None


def is_file_name(text: str) -> bool:
    """Whether `text` can be the name of a content file: no path, not hidden, not `entry.json`."""
    if text == RECORD or text.startswith((".", "-")) or "/" in text or not text.isprintable():
        return False
    return 0 < len(text.encode(errors="replace")) <= _MAX_NAME


def write_record(record: Record) -> str:
    """The text of `entry.json`."""
    content = {
        "format": _FORMAT,
        "kind": record.kind.value,
        "key": record.key,
        "file": record.file,
        "digest": record.digest,
        "size": record.size,
        "about": dict(record.about),
    }
    return json.dumps(content, indent=1) + "\n"


def read_record(text: bytes) -> Record | None:
    """The record in `entry.json`; None if it is none. Raises nothing: anybody may have written it."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return None
    kind, key, file, digest = (_text_of(content, name) for name in ("kind", "key", "file", "digest"))
    size, about = content.get("size"), content.get("about")
    if kind not in {member.value for member in Kind} or not is_key(key) or not is_file_name(file):
        return None
    if not _DIGEST.fullmatch(digest) or type(size) is not int or not 0 <= size < 2**63 or not is_about(about):
        return None
    return Record(Kind(kind), key, file, digest, size, about)


def _text_of(content: dict[str, Any], name: str) -> str:
    value = content.get(name)
    return value if isinstance(value, str) else ""


def is_about(value: Any) -> TypeGuard[dict[str, str]]:
    """Whether `value` can be what an entry says about itself: a few short texts."""
    return (
        isinstance(value, dict)
        and len(value) <= _MAX_ABOUT
        and all(_is_text(text) for pair in value.items() for text in pair)
    )


def _is_text(value: Any) -> bool:
    """Whether a value is a text of moderate length that can be encoded: JSON has names of half characters."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
