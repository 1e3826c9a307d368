"""All releases of a package on the index, newest first.

Sources: PEP 503 (the page of a package), PEP 691 and 700 (the same as JSON, with the time of each upload), PEP 592.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from dataclasses import dataclass
from datetime import datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from toolkit.pins.index.pages import ACCEPT, read_page
from toolkit.pins.index.remote import read_url
from toolkit.pins.index.uv import FRESH_SECONDS, index_address
from toolkit.pins.index.wheels import File, choose_file, supported_tags
from toolkit.recipes.model import IndexKind
from toolkit.support.files import make_directory, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from packaging.version import Version

    from toolkit.pins.index.uv import Uv
    from toolkit.pins.resolver.question import Question


@dataclass(frozen=True, slots=True)
class Release:
    """A release that has a file for the question's Python and platform: the one that would be installed."""

    version: Version
    file: File


def list_releases(name: str, question: Question, directory: Path) -> tuple[Release, ...]:
    """The releases of a package that an image can take, newest first; pages are kept in `directory` for ten minutes.

    Left out are pre-releases, yanked files and what is newer than the question's day. Nothing if the index does
    not tell: a page of links without versions, or no answer.
    """
    for address in _addresses(name, question):
        if rows := _rows(address, question, directory):
            return _releases(name, rows, question)
    return ()


def pages(uv: Uv) -> Path:
    """Where the lists of releases are kept."""
    return uv.cache / "ctk-releases"


def list_files(name: str, question: Question, directory: Path) -> dict[Version, list[dict[str, Any]]]:
    """All files of a package by their release, each as PEP 691 has it; nothing as `list_releases`."""
    found: dict[Version, list[dict[str, Any]]] = {}
    for address in _addresses(name, question):
        for row in _rows(address, question, directory):
            if (version := _version_of(name, str(row.get("filename")))) is not None:
                found.setdefault(version, []).append(row)
        if found:
            break
    return found


def kept_row(name: str, file: File, question: Question, directory: Path) -> dict[str, Any] | None:
    """The row of a file in a kept page of any age, None if there is none: a file with a hash never changes."""
    for address in _addresses(name, question) if file.sha256 else ():
        for row in _read_kept(_place(address, directory)) or ():
            if (row.get("hashes") or {}).get("sha256") == file.sha256 and row.get("filename") == file.name:
                return row
    return None


def _addresses(name: str, question: Question) -> Iterator[str]:
    """The pages to look at, in uv's order: an index for this package alone, else the others before the default."""
    bound = [index for index in question.indexes if name in index.packages]
    others = [index for index in question.indexes if not index.packages]
    for index in bound or others:
        if index.kind == IndexKind.INDEX:
            yield f"{index.url.rstrip('/')}/{name}/"
    if not bound:
        # `request_file` adds the credentials that the address may hold.
        parts = urlsplit(index_address())
        yield f"{urlunsplit(parts._replace(netloc=parts.netloc.rpartition('@')[2])).rstrip('/')}/{name}/"


def _rows(address: str, question: Question, directory: Path) -> list[dict[str, Any]]:
    """The files of a page, each as PEP 691 has it."""
    kept = _place(address, directory)
    with contextlib.suppress(OSError):
        if time.time() - kept.stat().st_mtime <= FRESH_SECONDS and (found := _read_kept(kept)) is not None:
            return found
    try:
        text = read_url(address, question.indexes, Accept=ACCEPT)[0].decode(errors="replace")
        rows = read_page(text, address)
    except (OSError, HTTPException, ValueError, AttributeError, RecursionError):
        return []
    make_directory(directory)
    write_atomically(kept, json.dumps(rows), durable=False)
    return rows


def _place(address: str, directory: Path) -> Path:
    return directory / f"{hashlib.sha256(address.encode()).hexdigest()}.json"


def _read_kept(path: Path) -> list[dict[str, Any]] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(row, dict) for row in found) else None


def _releases(name: str, rows: Iterable[dict[str, Any]], question: Question) -> tuple[Release, ...]:
    tags = supported_tags(question.target)
    python = question.target.environment()["python_full_version"]
    by_version: dict[Version, list[File]] = {}
    for row in rows:
        version = _version_of(name, str(row.get("filename")))
        unusable = not row["url"] or row.get("yanked") or not takes_python(row, python)
        if unusable or version is None or version.is_prerelease:
            continue
        file = file_of(row)
        if not is_too_new(file, question):
            by_version.setdefault(version, []).append(file)
    chosen = ((version, choose_file(files, tags)) for version, files in by_version.items())
    found = [Release(version, file) for version, file in chosen if file is not None]
    return tuple(sorted(found, key=lambda release: release.version, reverse=True))


def _version_of(name: str, filename: str) -> Version | None:
    try:
        found = parse_wheel_filename(filename)[:2] if filename.endswith(".whl") else parse_sdist_filename(filename)
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return found[1] if canonicalize_name(found[0]) == name else None


def file_of(row: dict[str, Any]) -> File:
    """A row of a page as a file."""
    return File(
        str(row["filename"]), row["url"], (row.get("hashes") or {}).get("sha256"), _time(row.get("upload-time"))
    )


def is_too_new(file: File, question: Question) -> bool:
    """Whether a file was uploaded after the question's day."""
    day = question.exclude_newer
    return bool(day and file.uploaded and file.uploaded.isoformat()[:10] > day[:10])


def takes_python(row: dict[str, Any], python: str) -> bool:
    """Whether `Requires-Python` of a file, as its page shows it, allows a Python; one that cannot be read does."""
    try:
        return SpecifierSet(row.get("requires-python") or "").contains(python, prereleases=True)
    except InvalidSpecifier:
        return True


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
