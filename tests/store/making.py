"""A store for tests, filled with small entries."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from toolkit.store import keeping
from toolkit.store.store import Entry, Kind, Store

if TYPE_CHECKING:
    from pathlib import Path

HOUR, DAY = 3600.0, 86400.0


def key_of(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def put(store: Store, name: str, kind: Kind = Kind.LAYER, *, text: bytes = b"", unused: float = 0.0) -> Entry:
    """Publish an entry that was made from `name`, and was last used `unused` seconds ago."""
    text = text or f"content of {name}".encode()
    key = key_of(text) if kind is Kind.PACKAGE else key_of(name)
    with store.staging() as directory:
        (directory / name).write_bytes(text)
        entry = store.publish(kind, key, directory / name, {"name": name})
    if unused:
        keeping._used.pop(entry.path.parent / "entry.json", None)  # a worker that lives for ten minutes uses it again
        set_unused(entry, unused)
    return entry


def set_unused(entry: Entry, seconds: float) -> None:
    record = entry.path.parent / "entry.json"
    moment = record.stat().st_mtime - seconds
    os.utime(record, (moment, moment))


def names(store: Store) -> list[str]:
    """The names that entries were made from."""
    from toolkit.store.listing import entries_of

    return sorted(listed.about.get("name", "?") for listed in entries_of(store.own))


def leftovers(directory: Path) -> list[str]:
    """What is in a store besides entries, notes and the directories for them."""
    found = [path for path in directory.rglob("*") if path.name.startswith(".")]
    return sorted(str(path.relative_to(directory)) for path in found)
