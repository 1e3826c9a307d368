"""Whether an entry is what its record says, and nobody else could have written it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolkit.store.entries import LARGEST_RECORD, RECORD, Entry, Kind, read_record
from toolkit.store.trusted import open_directory, open_file

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.store.digests import Digests
    from toolkit.store.entries import Record

NOBODY: frozenset[int] = frozenset()


class Damaged(OSError):  # noqa: N818
    """An entry is not what its record says."""


def check_entry(root: Path, kind: Kind, key: str, digests: Digests, owners: frozenset[int] = NOBODY) -> Entry:
    """The entry `kind/key` of the store `root`, whose content has the size and the hash of its record.

    Raises FileNotFoundError if there is none, Untrusted if a user other than root, this user and `owners` could have
    written it, Damaged, with the reason, and OSError if it cannot be read.
    """
    directory = open_directory(root, (kind.value, key), owners)
    try:
        record = _read(directory, kind, key, owners)
        content = open_file(directory, record.file, owners)
        try:
            if os.fstat(content).st_size != record.size:
                raise Damaged("its content does not have the recorded size")
            digest = digests.of_descriptor(content)
        finally:
            os.close(content)
    finally:
        os.close(directory)
    if digest != record.digest or (kind is Kind.PACKAGE and digest != f"sha256:{key}"):
        raise Damaged("its content does not have the recorded hash")
    return Entry(kind, key, root / kind / key / record.file, digest, record.size, record.about)


def read_entry(root: Path, kind: Kind, key: str, owners: frozenset[int] = NOBODY) -> tuple[Record, float, int]:
    """The record of an entry, its last use (seconds since 1970), and the bytes that it takes; its content is not read.

    Raises as `check_entry` does.
    """
    directory = open_directory(root, (kind.value, key), owners)
    try:
        record = _read(directory, kind, key, owners)
        used = os.stat(RECORD, dir_fd=directory, follow_symlinks=False)
        content = os.stat(record.file, dir_fd=directory, follow_symlinks=False)
    finally:
        os.close(directory)
    return record, used.st_mtime, used.st_blocks * 512 + content.st_blocks * 512


def _read(directory: int, kind: Kind, key: str, owners: frozenset[int]) -> Record:
    with os.fdopen(open_file(directory, RECORD, owners), "rb") as file:
        text = file.read(LARGEST_RECORD + 1)
    record = read_record(text) if len(text) <= LARGEST_RECORD else None
    if record is None or (record.kind, record.key) != (kind, key):
        raise Damaged(f"its {RECORD} is not valid")
    return record
