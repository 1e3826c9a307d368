"""Put a file into the store: made whole in a directory of its own, and named by one rename."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from typing import TYPE_CHECKING

from toolkit.store.entries import RECORD, Entry, Kind, Record, is_about, is_file_name, is_key, write_record
from toolkit.support.errors import MissingOnHost, ProgramFailed, WrongInput
from toolkit.support.files import FULL, format_free, open_regular
from toolkit.support.paths import LARGER_AREA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolkit.store.digests import Digests

_NAMES = {Kind.BASE: "image.sif", Kind.LAYER: "layer.sqfs"}
_BLOCK = 1 << 20


def content_name(kind: Kind, key: str, file: Path, about: Mapping[str, str]) -> str:
    """The name that `file` gets in the store; that of a package is kept.

    Raises WrongInput if the key, the name or `about` is not valid, or `file` is not a regular file.
    """
    name = _NAMES.get(kind, file.name)
    if not is_key(key) or not is_file_name(name) or not is_about(dict(about)):
        raise WrongInput(f"{file} cannot be kept in the store as {kind.value}/{key}/{name}")
    try:
        open_regular(file).close()
    except OSError as error:
        raise WrongInput(f"{file} cannot be kept in the store: {error.strerror}") from error
    return name


def make_entry(directory: Path, file: Path, record: Record, digests: Digests) -> Record:
    """Move `file` into the new directory `directory`, and write its record next to it; returns it with size and digest.

    Raises OSError, and ProgramFailed (`wrong-hash`) if the content of a package is not what its key says.
    """
    directory.mkdir(mode=0o755)
    # The umask, without changing it for other threads.
    mode = directory.stat().st_mode & 0o755 | 0o700
    directory.chmod(mode)
    _move(file, directory / record.file)
    with open_regular(directory / record.file) as content:
        os.fchmod(content.fileno(), mode & 0o644)
        digest = digests.of_descriptor(content.fileno())
        size = os.fstat(content.fileno()).st_size
    if record.kind is Kind.PACKAGE and digest != f"sha256:{record.key}":
        raise ProgramFailed(
            f"{record.file} has the hash {digest}, not sha256:{record.key}",
            fix="A proxy or a mirror may have replaced it. Try again from another network.",
            code="wrong-hash",
        )
    record = Record(record.kind, record.key, record.file, digest, size, record.about)
    descriptor = os.open(directory / RECORD, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode & 0o644)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(write_record(record))
    return record


def entry_of(root: Path, record: Record) -> Entry:
    """The entry of a record in the store `root`."""
    path = root / record.kind / record.key / record.file
    return Entry(record.kind, record.key, path, record.digest, record.size, record.about)


def _move(file: Path, target: Path) -> None:
    """Rename a regular file to `target`, or copy it and remove it. Raises OSError."""
    try:
        file.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with open_regular(file) as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy, _BLOCK)
        file.unlink()


@contextlib.contextmanager
def writing(own: Path) -> Iterator[None]:
    """Turn an OSError while the store `own` is written into MissingOnHost (`disk-full`, `store-not-writable`)."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise MissingOnHost(
                f"no space left on the disk or quota of the store {own}: {error.strerror} ({format_free(own)})",
                fix=LARGER_AREA,
                code="disk-full",
            ) from error
        raise MissingOnHost(
            f"the store {own} cannot be written: {error.strerror or error}",
            fix="Set CTK_HOME to a writable directory with free space, for example on scratch.",
            code="store-not-writable",
        ) from error
