"""A file on an index, read in parts: the metadata of a wheel of gigabytes is a few kilobytes of it."""

from __future__ import annotations

import io
import urllib.request
from typing import TYPE_CHECKING

from toolkit.pins.download import request_file
from toolkit.support.certificates import tls_context

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.recipes.model import Index

_TIMEOUT_SECONDS = 60
_TAIL = 64 << 10  # a wheel's table of contents is at its end, and most often its METADATA just before it
_LARGEST_WHOLE = 32 << 20


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
        request = request_file(self._url, self._indexes)
        request.add_header("Range", f"bytes={span}")
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=tls_context()) as answer:  # noqa: S310
            said = answer.headers.get("Content-Range")
            if said is None and int(answer.headers.get("Content-Length") or _LARGEST_WHOLE) >= _LARGEST_WHOLE:
                raise ValueError(f"the server of {self._url} sends whole files only")
            content: bytes = answer.read()
        return content, int(said.rpartition("/")[2]) if said else len(content)
