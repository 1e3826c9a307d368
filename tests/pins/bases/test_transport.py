"""Limits of the requests to a registry: where a redirect may lead, how long an answer may take, how long it may be."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.hostile_server import dripping
from toolkit.pins.bases import registry as client
from toolkit.pins.bases.registry import fetch_digest
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from tests.pins.bases import oci


def test_a_redirect_to_ftp_is_not_followed(registry: oci.Registry) -> None:
    registry.faults, registry.elsewhere = {"a/b": "other-site"}, "ftp://127.0.0.1:9"
    with pytest.raises(ProgramFailed, match="redirects to ftp://") as caught:
        fetch_digest(f"{registry.address}/a/b:1")
    assert caught.value.code == "registry-content"


@pytest.mark.parametrize(
    ("begin", "again", "pause"),
    [
        (b"", b"H", 0.05),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" ", 0.05),
    ],
)
def test_all_answers_of_a_registry_have_one_deadline(
    monkeypatch: pytest.MonkeyPatch, begin: bytes, again: bytes, pause: float
) -> None:
    monkeypatch.setattr(client, "TOTAL", 0.5)
    start = time.monotonic()
    with dripping(begin, again, pause) as host, pytest.raises(ProgramFailed, match="did not respond in time"):
        fetch_digest(f"{host}/image:1")
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("length", [9999, 1 << 60])
def test_the_body_of_a_redirect_is_not_read(length: int) -> None:
    begin = b"HTTP/1.1 307 Moved\r\nLocation: /v2/\r\nContent-Length: %d\r\n\r\n" % length
    start = time.monotonic()
    with dripping(begin, b" ", 0.05) as host, pytest.raises(ProgramFailed, match="redirects without end"):
        fetch_digest(f"{host}/image:1")
    assert time.monotonic() - start < 5


def test_an_answer_has_a_largest_size() -> None:
    begin = b"HTTP/1.1 200 OK\r\n\r\n"
    with dripping(begin, b" " * (1 << 20), 0) as host, pytest.raises(ProgramFailed, match=r"more than 8\.0 MiB"):
        fetch_digest(f"{host}/image:1")


@pytest.mark.parametrize(("letters", "message"), [(60_000, "60007 characters"), (8_000, "does not support: Bearer")])
def test_a_long_challenge_takes_no_time(letters: int, message: str) -> None:
    answer = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer " + b"a" * letters + b"\r\n\r\n"
    start = time.process_time()
    with dripping(answer, b"", 1) as host, pytest.raises(ProgramFailed, match=message):
        fetch_digest(f"{host}/image:1")
    assert time.process_time() - start < 0.3
