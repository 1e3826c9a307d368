"""A file on an index, read in parts: the metadata of a wheel of gigabytes is a few kilobytes of it."""

from __future__ import annotations

import io
import urllib.request
from functools import cache
from typing import TYPE_CHECKING

from toolkit.pins.download import request_file
from toolkit.support.certificates import tls_context

if TYPE_CHECKING:
    from collections.abc import Iterable
    from http.client import HTTPResponse
    from ssl import SSLContext

    from toolkit.recipes.model import Index

_TIMEOUT_SECONDS = 60
_TAIL = 64 << 10  # a wheel's table of contents is at its end, and most often its METADATA just before it
_LARGEST_WHOLE = 32 << 20


def open_url(url: str, indexes: Iterable[Index] = (), **headers: str) -> HTTPResponse:
    """What the server of an index answers, with the credentials that `indexes` have for it. Raises OSError."""
    request = request_file(url, indexes)
    for name, value in headers.items():
        request.add_header(name, value)
    answer: HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=_context())  # noqa: S310
    return answer


@cache
def _context() -> SSLContext:
    """One for all: to read the certificates of a host takes 40 ms, a request 10 ms, and there are dozens."""
    return tls_context()


class RemoteFile(io.RawIOBase):
    """The file at `url` by HTTP ranges; `indexes` have the credentials for it.

    Raises OSError where the server does not answer, ValueError where it sends a large file as a whole.
    """

    def __init__(self, url: str, indexes: Iterable[Index] = ()) -> None:
        self._url = url
        self._indexes = tuple(indexes)
        self._at = 0
        self._end, self._size = self._fetch(f"-{_TAIL}")

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        stop = self._size if size < 0 else min(self._size, self._at + size)
        start, self._at = self._at, max(self._at, stop)
        if start >= stop:
            return b""
        held_from = self._size - len(self._end)
        if start >= held_from:
            return self._end[start - held_from : stop - held_from]
        return self._fetch(f"{start}-{stop - 1}")[0]

    def _fetch(self, span: str) -> tuple[bytes, int]:
        """The bytes of one range, and the size of the whole file."""
        with open_url(self._url, self._indexes, Range=f"bytes={span}") as answer:
            said = answer.headers.get("Content-Range")
            if said is None and int(answer.headers.get("Content-Length") or _LARGEST_WHOLE) >= _LARGEST_WHOLE:
                raise ValueError(f"the server of {self._url} sends whole files only")
            content: bytes = answer.read()
        return content, int(said.rpartition("/")[2]) if said else len(content)
