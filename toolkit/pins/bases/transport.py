"""Requests to registries: limited in time and size. A redirect gets no login, and never leads away from TLS."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolkit.support.http_client import Limits, WrongContent, read_url, site_of

if TYPE_CHECKING:
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
    request = urllib.request.Request(url, data=body, method=method)  # noqa: S310 - `read_url` knows no other scheme
    for name, value in headers.items():
        request.add_unredirected_header(name, value) if name == "Authorization" else request.add_header(name, value)
    return read_url(request, Limits(_LARGEST, timeout, time.monotonic() + TOTAL if end is None else end))


def challenge_of(error: urllib.error.HTTPError, url: str) -> str:
    """How the registry that was asked at `url` wants to be answered.

    Raises WrongContent if another server sent the 401: a redirect must not decide who gets a login.
    """
    sender = error.geturl() or ""
    if _origin(sender) != _origin(url):
        raise WrongContent(f"redirects to {site_of(sender)}, which requires a login: only the registry gets yours")
    challenge: str = error.headers.get("WWW-Authenticate", "")
    if len(challenge) > _LONGEST_CHALLENGE:
        raise WrongContent(f"requires an authentication that takes {len(challenge)} characters to describe")
    return challenge


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
