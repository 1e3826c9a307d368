"""What is tried again: lost connections and busy servers, never an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.runtime.transient import is_busy, is_limited, is_transient

_BLOB = "FATAL:   While performing build: conveyor failed to get: GET http://r/v2/lab/tiny/blobs/sha256:e3"


@pytest.mark.parametrize(
    "line",
    [
        "FATAL:   While performing build: conveyor failed to get: error writing layer: unexpected EOF",
        f"{_BLOB}: unexpected status code 503 Service Unavailable",
        f"{_BLOB}: unexpected status code 429 Too Many Requests: {{}}",
        "reading blob sha256:a: received unexpected HTTP status: 502 Bad Gateway",
        "toomanyrequests: You have reached your pull rate limit.",
        "read tcp 10.0.0.1:5->10.0.0.2:443: read: connection reset by peer",
        'Get "https://r/v2/": net/http: TLS handshake timeout',
        "dial tcp 10.0.0.2:443: i/o timeout",
    ],
)
def test_lost_connections_and_busy_servers_are_tried_again(line: str) -> None:
    assert is_transient(["INFO:    Starting build...", line])


@pytest.mark.parametrize(
    "line",
    [
        *(f"{_BLOB}: unexpected status code {status}: {{}}" for status in (400, 401, 403, 404, 501)),
        'Get "https://r/v2/": tls: failed to verify certificate: x509: certificate has expired: unexpected EOF',
        "dial tcp 127.0.0.1:9: connect: connection refused",
        "dial tcp: lookup r.example: no such host",
        "write /scratch/x: no space left on device",
        "error writing layer: error verifying sha256 checksum after reading 9 bytes; got sha256:5, want sha256:6",
        "FATAL:   something else",
    ],
)
def test_answers_and_the_hosts_own_problems_are_final(line: str) -> None:
    assert not is_transient(["INFO:    Starting build...", line])


def test_only_a_server_that_is_limited_or_out_of_order_is_busy() -> None:
    for status in ("429 Too Many Requests: {}", "503 Service Unavailable", "500 Internal Server Error"):
        assert is_busy(["INFO: Starting build...", f"{_BLOB}: unexpected status code {status}"])
    for line in (f"{_BLOB}: unexpected status code 501 Not Implemented", f"{_BLOB}: unexpected EOF", "404"):
        assert not is_busy([line])


def test_only_429_counts_as_limited() -> None:
    assert is_limited([f"{_BLOB}: unexpected status code 429 Too Many Requests: {{}}"])
    assert not is_limited([f"{_BLOB}: unexpected status code 503 Service Unavailable"])


@given(st.lists(st.text(max_size=80), max_size=5))
def test_any_output_has_an_answer(lines: list[str]) -> None:
    assert is_transient(lines) in (True, False)
