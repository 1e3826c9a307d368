"""Files on an index, read in parts: the metadata of a wheel of gigabytes is a few kilobytes of it."""

from __future__ import annotations

import io
import threading
import urllib.request
from functools import cache
from http.client import HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlsplit

from toolkit.pins.index.download import request_file
from toolkit.support.certificates import tls_context

if TYPE_CHECKING:
    from collections.abc import Iterable
    from http.client import HTTPMessage, HTTPResponse
    from ssl import SSLContext

    from toolkit.recipes.model import Index

_TIMEOUT_SECONDS = 60
_TAIL = 64 << 10  # a wheel's table of contents is at its end, and most often its METADATA just before it
_LARGEST = 32 << 20
_connections = threading.local()


def read_url(url: str, indexes: Iterable[Index] = (), **headers: str) -> tuple[bytes, HTTPMessage]:
    """What the server of an index answers, and the answer's header fields. Uses the credentials in `indexes`.

    Raises OSError (a status of 400 and above is HTTPError) or HTTPException, ValueError for more than _LARGEST.
    """
    request = request_file(url, indexes)
    request.headers.update(headers)
    if (answer := _ask_open_connection(request)) is not None:
        return answer
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=_context()) as found:  # noqa: S310
        return _content(found), found.headers


def _ask_open_connection(request: urllib.request.Request) -> tuple[bytes, HTTPMessage] | None:
    """The answer over a connection that stays open; None if there is none: a proxy, a redirect, a lost connection.

    A lock reads the metadata of dozens of files from one server. To connect takes longer than to ask, and some name
    servers drop a part of many questions at once.
    """
    parts = urlsplit(request.full_url)
    proxied = parts.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(parts.netloc)
    if parts.scheme != "https" or proxied:
        return None
    open_now: dict[str, HTTPSConnection] = _connections.__dict__
    connection = open_now.get(parts.netloc)
    if connection is None:
        connection = HTTPSConnection(parts.netloc, timeout=_TIMEOUT_SECONDS, context=_context())
        open_now[parts.netloc] = connection
    headers = {**request.headers, **request.unredirected_hdrs, "User-Agent": "ctk"}
    try:
        connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers)
        answer = connection.getresponse()
        content = _content(answer)
    except (OSError, HTTPException, ValueError):
        # A new connection shows what is wrong, if anything.
        open_now.pop(parts.netloc).close()
        return None
    if answer.status >= 400:
        raise HTTPError(request.full_url, answer.status, answer.reason, answer.headers, None)
    return (content, answer.headers) if answer.status in (200, 206) else None


def _content(answer: HTTPResponse) -> bytes:
    # A server without range support would send gigabytes.
    if int(answer.headers.get("Content-Length") or 0) > _LARGEST:
        raise ValueError("the server sends whole files only")
    content = answer.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError("the server sends whole files only")
    return content


@cache
def _context() -> SSLContext:
    """One context for all: reading the host's certificates takes 40 ms, a request 10 ms, and there are dozens."""
    return tls_context()


class RemoteFile(io.RawIOBase):
    """The file at `url` by HTTP ranges; `indexes` have the credentials for it.

    Raises OSError if the server does not answer, ValueError if it sends a large file as a whole.
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
        content, headers = read_url(self._url, self._indexes, Range=f"bytes={span}")
        said = headers.get("Content-Range")
        return content, int(said.rpartition("/")[2]) if said else len(content)
