"""Where the files of a lock are: a lock names a file and its hash, and an index says at which address it is."""

from __future__ import annotations

import threading
import urllib.error
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from toolkit.pins.index.answers import refused, too_large
from toolkit.pins.index.pages import ACCEPT, read_page
from toolkit.pins.index.remote import read_url
from toolkit.pins.index.retrying import repeat
from toolkit.pins.index.uv import index_address
from toolkit.recipes.model import IndexKind
from toolkit.support import parallel
from toolkit.support.certificates import certificate_problem
from toolkit.support.errors import ProgramFailed
from toolkit.support.http_client import TooLarge, TooSlow
from toolkit.support.redaction import server_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolkit.recipes.model import Index

_NOT_THERE = (401, 403, 404, 410)  # some servers answer 403 for a package that they do not have
_RETRY = "Try again later, or from another network."


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that a lock names: `project` is the normalised name of its package, `sha256` 64 hexadecimal digits."""

    project: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is; `size` in bytes, None if the index does not tell."""

    url: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """The places of a file, in the order in which they are tried, and what is wrong with indexes that were asked."""

    places: tuple[Place, ...] = ()
    problems: tuple[ProgramFailed, ...] = ()


@dataclass(slots=True)
class Locator:
    """Asks the indexes of one lock, each page once. A server that did not answer is not asked again.

    `wait` gets the seconds between two attempts.
    """

    indexes: Sequence[Index] = ()
    wait: Callable[[float], object] = parallel.wait
    _pages: dict[str, list[dict[str, Any]] | ProgramFailed] = field(default_factory=dict)
    _silent: dict[str, ProgramFailed] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def locate(self, wanted: Wanted) -> Located:
        """Where `wanted` is. An index with a problem does not hide another one that has the file."""
        places: dict[str, Place] = {}
        problems: list[ProgramFailed] = []
        for address in page_addresses(wanted.project, self.indexes):
            rows = self._rows(address)
            if isinstance(rows, ProgramFailed):
                problems.append(rows)
                continue
            for row in rows:
                if row.get("filename") != wanted.name:
                    continue
                if _sha256(row) not in (None, wanted.sha256):
                    problems.append(_other_hash(wanted, address))
                    continue
                if not row["url"]:
                    problems.append(unsafe_link(wanted.name, server_of(address)))
                    continue
                size = row.get("size")
                places.setdefault(row["url"], Place(row["url"], size if type(size) is int and size >= 0 else None))
        return Located(tuple(places.values()), tuple(problems))

    def _rows(self, address: str) -> list[dict[str, Any]] | ProgramFailed:
        server = urlsplit(address).netloc
        with self._lock:
            known = self._pages.get(address, self._silent.get(server))
        if known is not None:
            return known
        found = self._read(address)
        with self._lock:
            self._pages[address] = found
            if isinstance(found, ProgramFailed) and found.code in ("index-unreachable", "certificate"):
                self._silent[server] = found
        return found

    def _read(self, address: str) -> list[dict[str, Any]] | ProgramFailed:
        try:
            content, _ = repeat(lambda: read_url(address, self.indexes, Accept=ACCEPT), self.wait)
        except urllib.error.HTTPError as error:
            return [] if error.code in _NOT_THERE else refused(server_of(address), error.code)
        except (OSError, HTTPException) as error:
            return unreachable(f"the package index {server_of(address)}", error)
        except TooLarge as error:
            return too_large(f"the package index {server_of(address)}", error)
        except ValueError as error:
            return _malformed(address, error)
        try:
            return read_page(content.decode(errors="replace"), address)
        except (ValueError, AttributeError, RecursionError) as error:
            return _malformed(address, error)


def page_addresses(project: str, indexes: Sequence[Index]) -> Iterator[str]:
    """The pages that may list a package's files: those of an index for this package alone, else all, PyPI last."""
    bound = [index for index in indexes if project in index.packages]
    for index in bound or [index for index in indexes if not index.packages]:
        yield index.url if index.kind == IndexKind.FIND_LINKS else f"{index.url.rstrip('/')}/{project}/"
    # `request_file` adds the credentials that the address may hold.
    parts = urlsplit(index_address())
    if not bound and parts.scheme in ("http", "https"):
        yield f"{urlunsplit(parts._replace(netloc=parts.netloc.rpartition('@')[2])).rstrip('/')}/{project}/"


def unreachable(what: str, error: Exception) -> ProgramFailed:
    """The error for a server that sends nothing, or a part only; for a certificate with the reason."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if (problem := certificate_problem(str(reason))) is not None:
        meaning, fix = problem
        return ProgramFailed(f"{what} cannot be used: {meaning}", fix=fix, code="certificate")
    if isinstance(reason, IncompleteRead):
        return ProgramFailed(f"{what} sent an incomplete answer", fix=_RETRY, code="index-unreachable")
    if isinstance(reason, TooSlow):
        return ProgramFailed(f"{what} {reason}", fix=_RETRY, code="index-unreachable")
    said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return ProgramFailed(
        f"{what} cannot be reached: {said}",
        fix="Check the network with `ctk doctor`, and the `[[index]]` of the recipe. UV_DEFAULT_INDEX or PIP_INDEX_URL "
        "names another index in place of PyPI.",
        code="index-unreachable",
    )


def _malformed(address: str, error: Exception) -> ProgramFailed:
    return ProgramFailed(
        f"the package index {server_of(address)} sent a page that cannot be read: {error}",
        fix="A proxy or a login page of this network may have answered instead of it. `ctk doctor` checks the index.",
        code="malformed-index-page",
    )


def unsafe_link(file: str, where: str) -> ProgramFailed:
    """The error for a file that `where` has at an address to which no server may lead."""
    return ProgramFailed(
        f"{where} names an address of {file} that is not used: a server may lead to https, or from http to http",
        fix="Correct the index, or use another one.",
        code="unsafe-link",
    )


def _other_hash(wanted: Wanted, address: str) -> ProgramFailed:
    return ProgramFailed(
        f"the package index {server_of(address)} lists {wanted.name} with another hash than the lock",
        fix="The index or a mirror has another file under this name. Use the index that the lock was made with, "
        "or `ctk lock --upgrade`.",
        code="wrong-hash",
    )


def _sha256(row: dict[str, Any]) -> str | None:
    hashes = row.get("hashes")
    found = hashes.get("sha256") if isinstance(hashes, dict) else None
    return found if isinstance(found, str) and found else None
