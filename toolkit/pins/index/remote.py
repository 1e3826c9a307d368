"""Files on an index, read in parts: the metadata of a wheel of gigabytes is a few kilobytes of it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from urllib.error import HTTPError

from toolkit.pins.index.download import request_file
from toolkit.support import http_client
from toolkit.support.http_client import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from email.message import Message

    from toolkit.recipes.model import Index

_TAIL = 64 << 10  # a wheel's table of contents is at its end, and most often its METADATA just before it
_LARGEST = 32 << 20  # of a page, and of what a server sends of a file: one without range support would send gigabytes


def read_url(url: str, indexes: Iterable[Index] = (), **headers: str) -> tuple[bytes, Message]:
    """What the server of an index answers, and the answer's header fields. Uses the credentials in `indexes`.

    A lock reads the metadata of dozens of files from one server. To connect takes longer than to ask, and some name
    servers drop a part of many questions at once: hence a connection that stays open. Raises OSError (a status of 400
    and above is HTTPError) or HTTPException, WrongContent for more than _LARGEST.
    """
    request = request_file(url, indexes)
    request.headers.update(headers)
    limits = Limits(_LARGEST)
    answer = http_client.read_over_kept_connection(request, limits)
    if answer is None:
        return http_client.read_url(request, limits)
    status, content, found = answer
    if status >= 400:
        raise HTTPError(url, status, "", found, None)
    return (content, found) if status in (200, 206) else http_client.read_url(request, limits)


class RemoteFile(io.RawIOBase):
    """The file at `url` by HTTP ranges; `indexes` have the credentials for it.

    Raises OSError if the server does not answer, WrongContent if it sends a large file as a whole.
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
