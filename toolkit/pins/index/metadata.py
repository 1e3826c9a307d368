"""What a wheel on the index requires, read without the wheel and kept by its hash.

Sources: PEP 658 (`FILE.metadata`). A mirror may not have it: then METADATA is read out of the wheel (HTTP ranges).
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from toolkit.inventory.contents.distributions import parse_headers
from toolkit.pins.index.remote import RemoteFile, read_url
from toolkit.support.files import make_directory, write_atomically
from toolkit.support.zip_members import read_member

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.pins.index.wheels import File
    from toolkit.recipes.model import Index

_UNANSWERED = (OSError, HTTPException)
# What zipfile raises for a file that is damaged, encrypted, or compressed in a way that it does not know.
_UNREADABLE = (*_UNANSWERED, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error)
_LARGEST = 8 << 20  # bytes of METADATA, unpacked


def read_requirements(file: File, directory: Path, indexes: Iterable[Index] = ()) -> tuple[str, ...] | None:
    """Requires-Dist of a wheel; None if it cannot be read: the server serves neither metadata nor parts of files.

    None for a source distribution too: what it requires is known only once it is built.
    """
    if not file.is_wheel:
        return None
    kept = directory / f"{file.sha256}.json" if file.sha256 else None
    if kept is not None and (known := _read_kept(kept)) is not None:
        return known
    try:
        text = _fetch_metadata(file, indexes)
    except _UNREADABLE:
        return None
    requires = tuple(parse_headers(text).get("requires-dist", ()))
    if kept is not None:
        make_directory(directory)
        write_atomically(kept, json.dumps(requires), durable=False)
    return requires


def _read_kept(path: Path) -> tuple[str, ...] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return tuple(found) if isinstance(found, list) and all(isinstance(text, str) for text in found) else None


def _fetch_metadata(file: File, indexes: Iterable[Index]) -> str:
    parts = urlsplit(file.url)
    if parts.scheme == "file":
        return _read_from_wheel(zipfile.ZipFile(Path(unquote(parts.path))))
    try:
        text = read_url(f"{file.url}.metadata", indexes)[0].decode(errors="replace")
    except _UNANSWERED:
        text = ""
    # A server may answer an unknown address with a page of its own.
    if text.lstrip().lower().startswith("metadata-version:"):
        return text
    return _read_from_wheel(zipfile.ZipFile(RemoteFile(file.url, indexes)))


def _read_from_wheel(wheel: zipfile.ZipFile) -> str:
    with wheel:
        name = next((member for member in wheel.namelist() if member.endswith(".dist-info/METADATA")), "METADATA")
        return read_member(wheel, wheel.getinfo(name), _LARGEST).decode(errors="replace")
