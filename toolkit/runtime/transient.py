"""Which failures of the runtime are worth another attempt: those of a connection or a busy server, not an answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Recorded from Apptainer 1.4.5 (go-containerregistry) with a registry that fails; others from Go's net/http and net,
# and from containers/image, which older Apptainer uses.
_STATUS = re.compile(r"(?:status(?: code)?:?|HTTP status:?|StatusCode:) (?P<status>[1-5]\d\d)\b", re.IGNORECASE)
_LOST = re.compile(
    r"unexpected EOF|\bEOF\b|connection reset by peer|broken pipe|i/o timeout|TLS handshake timeout"
    r"|context deadline exceeded|Client\.Timeout|server closed idle connection"
    r"|http2: (?:server sent GOAWAY|client connection)"
    r"|stream error: .*(?:INTERNAL_ERROR|REFUSED_STREAM)|connection timed out|server misbehaving",
    re.IGNORECASE,
)
_LIMITED = re.compile(r"toomanyrequests|429 Too Many Requests", re.IGNORECASE)
_FINAL = re.compile(
    r"x509|certificate|unauthorized|\bdenied\b|manifest.unknown|no space left|quota exceeded|connection refused"
    r"|no such host|network is unreachable|HTTP response to HTTPS client",
    re.IGNORECASE,
)
_LIMIT = 429
_SERVER_ERRORS = range(500, 600)
_NOT_IMPLEMENTED = 501


def is_limited(lines: Iterable[str]) -> bool:
    """Whether a server refused a request because of their number (HTTP status 429)."""
    return any(_LIMITED.search(line) or _LIMIT in _statuses(line) for line in lines)


def is_busy(lines: Iterable[str]) -> bool:
    """Whether a server refused a request for the moment: it may ask to wait (`Retry-After` of RFC 9110, 10.2.3)."""
    text = list(lines)
    return is_limited(text) or any(any(map(_is_out_of_order, _statuses(line))) for line in text)


def is_transient(lines: Iterable[str]) -> bool:
    """Whether the output of a failed program says that a connection was lost, or a server was busy or out of order.

    Answers are final: 401, 403 and 404, a certificate, a full disk. So is a server that cannot be reached at all, as on
    a node without internet.
    """
    text = list(lines)
    if any(_is_final(line) for line in text):
        return False
    return is_busy(text) or any(_LOST.search(line) for line in text)


def _is_final(line: str) -> bool:
    statuses = _statuses(line)
    return bool(_FINAL.search(line)) or any(400 <= status < 500 and status != _LIMIT for status in statuses)


def _is_out_of_order(status: int) -> bool:
    return status in _SERVER_ERRORS and status != _NOT_IMPLEMENTED


def _statuses(line: str) -> list[int]:
    return [int(found["status"]) for found in _STATUS.finditer(line)]
