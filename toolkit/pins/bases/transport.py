"""Requests to registries: limited in time and size. A redirect gets no login, and never leads away from TLS."""

from __future__ import annotations

import http.client
import io
import time
import urllib.error
import urllib.request
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolkit.pins.bases.manifests import WrongContent
from toolkit.support.certificates import tls_context

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from email.message import Message

TIMEOUT = 20.0  # seconds without a byte from a registry
TOTAL = 60.0  # seconds for all that is asked about one repository
_LARGEST = 8 << 20
_LONGEST_CHALLENGE = 8 << 10
_PORTS = {"http": 80, "https": 443}


def fetch(
    url: str,
    headers: Mapping[str, str],
    timeout: float = TIMEOUT,
    *,
    method: str = "GET",
    body: bytes | None = None,
    end: float | None = None,
) -> tuple[bytes, Message]:
    """The content and the headers of a response, which has to be complete at `end` (of `time.monotonic`).

    A redirect, such as that of a blob to a content network, gets no Authorization header. Raises OSError,
    HTTPException, or WrongContent for more than eight MiB or a redirect that is not followed.
    """
    request = urllib.request.Request(url, data=body, method=method)  # noqa: S310 - the opener knows no other scheme
    for name, value in headers.items():
        request.add_unredirected_header(name, value) if name == "Authorization" else request.add_header(name, value)
    opener = _opener(time.monotonic() + TOTAL if end is None else end, url)
    with opener.open(request, timeout=timeout) as answer:
        return answer.read(), answer.headers


def challenge_of(error: urllib.error.HTTPError, url: str) -> str:
    """How the registry that was asked at `url` wants to be answered.

    Raises WrongContent if another server sent the 401: a redirect must not decide who gets a login.
    """
    sender = error.geturl() or ""
    if _origin(sender) != _origin(url):
        raise WrongContent(f"redirects to {_site(sender)}, which requires a login: only the registry gets yours")
    challenge: str = error.headers.get("WWW-Authenticate", "")
    if len(challenge) > _LONGEST_CHALLENGE:
        raise WrongContent(f"requires an authentication that takes {len(challenge)} characters to describe")
    return challenge


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _site(url: str) -> str:
    """Scheme and host of an address: the rest may hold a signature."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _opener(end: float, url: str) -> urllib.request.OpenerDirector:
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(end),
        _Https(end, tls_context() if url.startswith("https") else None),
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
        """As urllib, but neither to FTP nor from https to http."""
        if urlsplit(newurl).scheme not in ("https", urlsplit(req.full_url).scheme):
            raise WrongContent(f"redirects to {_site(newurl)}, without TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Limited(io.RawIOBase):
    """What a server sends, headers and `100 Continue` included, until it is too late or too much."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket, end: float) -> None:
        self._raw, self._connection, self._end, self._left = raw, connection, end, _LARGEST

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(_left(self._connection.gettimeout(), self._end))
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise WrongContent(f"sends more than {_LARGEST >> 20} MiB")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def _left(timeout: float | None, end: float) -> float:
    """The seconds that an operation may take. Raises TimeoutError if there are none."""
    if (left := end - time.monotonic()) <= 0:
        raise TimeoutError
    return left if timeout is None else min(timeout, left)


class _UntilEnd(urllib.request.AbstractHTTPHandler):
    """Connections whose responses are `_Limited`."""

    end: float

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> Any:
        def response(connection: socket.socket, **about: Any) -> http.client.HTTPResponse:
            made = http.client.HTTPResponse(connection, **about)
            made.fp = io.BufferedReader(_Limited(made.fp.detach(), connection, self.end))
            return made

        def connect(host: str, *, timeout: float, **rest: Any) -> http.client.HTTPConnection:
            made: http.client.HTTPConnection = http_class(host, timeout=_left(timeout, self.end), **rest)
            made.response_class = response  # type: ignore[assignment]
            return made

        return super().do_open(connect, req, **options)  # type: ignore[arg-type]


class _Http(_UntilEnd, urllib.request.HTTPHandler):
    def __init__(self, end: float) -> None:
        super().__init__()
        self.end = end


class _Https(_UntilEnd, urllib.request.HTTPSHandler):
    def __init__(self, end: float, context: Any) -> None:
        super().__init__(context=context)
        self.end = end
