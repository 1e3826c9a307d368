"""ctk's own requests: limited in size and time, stopped at once, and never led away from TLS or to a file.

A server may be hostile or broken. Its answer has a largest size, headers and chunks included; it has to send a least
rate; and what waits for it, name servers included, is woken when the work is stopped (`toolkit.support.parallel`).
"""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import queue
import socket
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolkit.support.certificates import tls_context
from toolkit.support.files import format_size
from toolkit.support.parallel import on_stop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

SILENCE = 30.0  # seconds without a byte
LEAST_RATE = 1 << 10  # bytes a second
WINDOW = 60.0  # seconds over which the rate is taken
_LARGEST_HEAD = 1 << 20  # bytes before the body: headers, `100 Continue`, and whole redirects
_FRAMING = 8  # times the size of a body: what it may take as chunks
_BLOCK = 1 << 20
_CONNECTING = 10.0  # seconds for one address of a server, of which it may have several
_connections = threading.local()


class WrongContent(ValueError):  # noqa: N818 - named like the errors of toolkit.support
    """The server answered with something else than was asked for. `str()` of it continues "the server HOST …"."""


class TooLarge(WrongContent):
    """The answer is larger than it may be."""


class TooSlow(TimeoutError):  # noqa: N818
    """The server sends less than the least rate."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one request. `largest`: the bytes of its answer. `silence`: seconds without a byte. `end`, of
    `time.monotonic`: when the answer has to be complete.
    """

    largest: int
    silence: float = SILENCE
    end: float | None = None


def may_lead(address: str, url: str) -> bool:
    """Whether an answer from `address` may lead to `url`, as a link or a redirect: to https, or from http to http.

    Anything else would open a file of this host, or let others on the way change what TLS protected before.
    """
    try:
        return urlsplit(url).scheme in ("https", urlsplit(address).scheme)
    except ValueError:
        return False


def site_of(url: str) -> str:
    """Scheme and host of an address: the rest may hold a signature."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@contextlib.contextmanager
def open_url(request: urllib.request.Request, limits: Limits) -> Iterator[http.client.HTTPResponse]:
    """The response to a request, to be read with `blocks`; a redirect that is followed gets no Authorization header.

    Raises OSError (a status of 400 and above is HTTPError, as is an endless redirect), HTTPException, or WrongContent
    for a redirect that is not followed.
    """
    guard = _Guard(limits)
    with on_stop(guard.stop), _opener(guard).open(request, timeout=limits.silence) as answer:
        guard.allow_body()
        yield answer


def read_url(request: urllib.request.Request, limits: Limits) -> tuple[bytes, Message]:
    """The whole content of a response, and its headers. Raises as `open_url` and `blocks` do."""
    with open_url(request, limits) as answer:
        return b"".join(blocks(answer, limits.largest)), answer.headers


def blocks(answer: http.client.HTTPResponse, largest: int) -> Iterator[bytes]:
    """The content of a response. Raises TooLarge for more than `largest` bytes, IncompleteRead if not all come."""
    size = 0
    if (answer.length or 0) > largest:
        raise _too_large(largest)
    # Never all at once: http.client allocates what a server declares.
    while block := answer.read(_BLOCK):
        size += len(block)
        if size > largest:
            raise _too_large(largest)
        yield block
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)


def read_over_kept_connection(
    request: urllib.request.Request, limits: Limits
) -> tuple[int, bytes, http.client.HTTPMessage] | None:
    """Status, content and headers over a connection of this thread that stays open; None if `read_url` has to ask.

    It has to for http, for a proxy, and after a lost connection: a new one shows what is wrong, if anything. No
    redirect is followed. Raises TimeoutError and WrongContent.
    """
    parts = urlsplit(request.full_url)
    proxied = parts.scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(parts.netloc)
    if parts.scheme != "https" or proxied:
        return None
    kept: dict[str, http.client.HTTPSConnection] = _connections.__dict__
    connection = kept.get(parts.netloc)
    if connection is None:
        connection = http.client.HTTPSConnection(parts.netloc, timeout=limits.silence, context=tls_context())
        kept[parts.netloc] = connection
    guard = _Guard(limits)
    guard.watch(connection)
    headers = {**request.headers, **request.unredirected_hdrs, "User-Agent": "ctk"}
    try:
        with on_stop(guard.stop):
            connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers)
            answer = connection.getresponse()
            guard.allow_body()
            return answer.status, b"".join(blocks(answer, limits.largest)), answer.headers
    except BaseException as error:
        kept.pop(parts.netloc).close()
        if isinstance(error, OSError | http.client.HTTPException | ValueError) and not isinstance(
            error, TimeoutError | WrongContent
        ):
            return None
        raise


def _too_large(largest: int) -> TooLarge:
    return TooLarge(f"sends more than {format_size(largest)}")


class Rate:
    """What a server sends while ctk waits for it, and for nothing else."""

    def __init__(self) -> None:
        self._size, self._seconds = 0, 0.0

    def add(self, size: int, seconds: float) -> None:
        """Count what came in so many seconds. Raises TooSlow at the end of a window with too little."""
        self._size += size
        self._seconds += seconds
        if self._seconds < WINDOW:
            return
        if self._size < LEAST_RATE * WINDOW:
            raise TooSlow(f"sends less than {format_size(LEAST_RATE)} a second")
        self._size, self._seconds = 0, 0.0


class _Guard:
    """The limits of one request, through all its redirects, and what ends it from another thread."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._left = _LARGEST_HEAD
        self._rate = Rate()
        self._descriptor: int | None = None
        self._connected: queue.SimpleQueue[socket.socket | BaseException] = queue.SimpleQueue()

    def allow_body(self) -> None:
        """The headers are there."""
        self._left += self._limits.largest * _FRAMING

    def stop(self) -> None:
        """Wake the thread that waits for the server."""
        self._connected.put(InterruptedError("stopped"))
        if self._descriptor is not None:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._descriptor)) as twin:
                twin.shutdown(socket.SHUT_RDWR)

    def watch(self, connection: http.client.HTTPConnection) -> None:
        """Let a connection, which may be open already, be opened and read under this guard."""

        def response(found: socket.socket, **about: Any) -> http.client.HTTPResponse:
            made = http.client.HTTPResponse(found, **about)
            made.fp = io.BufferedReader(_Limited(made.fp.detach(), found, self))
            return made

        connection.response_class = response  # type: ignore[assignment]
        connection._create_connection = self._connect  # type: ignore[attr-defined]
        if connection.sock is not None:
            self._descriptor = connection.sock.fileno()

    def _connect(self, address: tuple[str, int], timeout: float, *_: object) -> socket.socket:
        """As `socket.create_connection`, in a thread of its own: nothing else wakes who waits for a name server."""
        answers = self._connected

        def connect() -> None:
            try:
                found = socket.create_connection(address, min(timeout, _CONNECTING))
            except BaseException as error:  # who waits raises it
                answers.put(error)
            else:
                found.settimeout(timeout)
                answers.put(found)

        threading.Thread(target=connect, daemon=True).start()
        try:
            answer = answers.get(timeout=self.patience(2 * self._limits.silence))
        except queue.Empty:
            raise TimeoutError("the connection timed out") from None
        if isinstance(answer, BaseException):
            raise answer
        self._descriptor = answer.fileno()
        if not answers.empty():  # stopped before there was a descriptor to wake
            answer.close()
            raise InterruptedError("stopped")
        return answer

    def patience(self, timeout: float | None) -> float | None:
        """The seconds that an operation may take. Raises TimeoutError if there are none."""
        if self._limits.end is None:
            return timeout
        if (left := self._limits.end - time.monotonic()) <= 0:
            raise TimeoutError
        return left if timeout is None else min(timeout, left)

    def count(self, size: int, seconds: float) -> None:
        """Count bytes of the server. Raises TooLarge, TooSlow."""
        self._left -= size
        if self._left < 0:
            raise _too_large(self._limits.largest)
        self._rate.add(size, seconds)


class _Limited(io.RawIOBase):
    """What a server sends, headers and `100 Continue` included, until it is too late or too much."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket, guard: _Guard) -> None:
        self._raw, self._connection, self._guard = raw, connection, guard

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(self._guard.patience(self._connection.gettimeout()))
        begun = time.monotonic()
        count = self._raw.readinto(buffer)
        self._guard.count(count or 0, time.monotonic() - begun)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def _opener(guard: _Guard) -> urllib.request.OpenerDirector:
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(guard),
        _Https(guard),
        _Redirects(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """As urllib, but only where an answer may lead."""
        if not may_lead(req.full_url, newurl):
            raise WrongContent(f"redirects to {site_of(newurl)}, without TLS")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        fp.close()  # urllib would read its body at once, of whatever size
        return request


class _Guarded(urllib.request.AbstractHTTPHandler):
    """Connections under a guard."""

    def __init__(self, guard: _Guard) -> None:
        super().__init__()
        self.guard = guard

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> Any:
        def connect(host: str, *, timeout: float, **rest: Any) -> http.client.HTTPConnection:
            made: http.client.HTTPConnection = http_class(host, timeout=self.guard.patience(timeout), **rest)
            self.guard.watch(made)
            return made

        return super().do_open(connect, req, **options)  # type: ignore[arg-type]


class _Http(_Guarded):
    http_request = urllib.request.AbstractHTTPHandler.do_request_

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        answer: http.client.HTTPResponse = self.do_open(http.client.HTTPConnection, request)
        return answer


class _Https(_Guarded):
    https_request = urllib.request.AbstractHTTPHandler.do_request_

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        answer: http.client.HTTPResponse = self.do_open(http.client.HTTPSConnection, request, context=tls_context())
        return answer
