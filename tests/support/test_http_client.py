"""Requests to servers that send too much, too slowly, nothing, or lead elsewhere."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from http.client import HTTPException, IncompleteRead
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile_server import dripping
from toolkit.support import http_client
from toolkit.support.http_client import Limits, Rate, TooLarge, TooSlow, WrongContent, may_lead, open_url, read_url
from toolkit.support.parallel import parallel

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SMALL = Limits(5000, silence=5)


def ask(host: str, limits: Limits = SMALL, scheme: str = "http") -> bytes:
    return read_url(urllib.request.Request(f"{scheme}://{host}/x"), limits)[0]  # noqa: S310


@pytest.mark.parametrize(
    ("address", "url", "allowed"),
    [
        ("http://a/simple/", "http://b/file", True),
        ("http://a/simple/", "https://b/file", True),
        ("https://a/simple/", "HTTPS://b/file", True),
        ("https://a/simple/", "http://a/file", False),
        ("http://a/simple/", "file:///etc/passwd", False),
        ("http://a/simple/", "FILE:/dev/zero", False),
        ("http://a/simple/", "ftp://a/file", False),
        ("http://a/simple/", "data:,x", False),
        ("http://a/simple/", "//a/file", False),
        ("http://a/simple/", "http://[", False),
        ("file:///simple", "file:///files/x", True),
        ("file:///simple", "http://a/x", False),
    ],
)
def test_an_answer_leads_to_https_or_from_http_to_http(address: str, url: str, allowed: bool) -> None:
    assert may_lead(address, url) is allowed


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (OK + b"\r\n", b"x" * 4096),
        (CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"),
        (CHUNKED + b"0\r\n", b"X-Trailer: " + b"x" * 4096 + b"\r\n"),
        (CHUNKED + b"1;", b"x" * 4096),
        (CHUNKED + b"fffffffffffffff\r\n", b"x" * 4096),
        (OK + b"Content-Length: 5001\r\n\r\n", b"x"),
        (OK + b"Content-Length: 1152921504606846976\r\n\r\n", b"x"),
        (OK, b"X-Header: " + b"x" * 60000 + b"\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        (b"", b"x" * 4096),
    ],
)
def test_an_answer_without_an_end_is_given_up(begin: bytes, again: bytes) -> None:
    start = time.monotonic()
    with dripping(begin, again, 0) as host, pytest.raises((TooLarge, HTTPException)):
        ask(host)
    assert time.monotonic() - start < 5


def test_an_answer_may_have_its_largest_size_and_has_to_be_complete() -> None:
    for head in (OK + b"Content-Length: 5000\r\n\r\n", CHUNKED + b"1388\r\n"):
        with dripping(head + b"x" * 5000 + b"\r\n0\r\n\r\n", b"", 0) as host:
            assert ask(host) == b"x" * 5000
    with dripping(OK + b"Content-Length: 5000\r\n\r\nshort", None, 0) as host, pytest.raises(IncompleteRead):
        ask(host)


def test_the_rate_is_taken_over_a_window_of_waiting() -> None:
    rate = Rate()
    rate.add(60 * 1024, 59)
    rate.add(0, 30)  # the window ends with enough
    rate.add(1, 59)
    with pytest.raises(TooSlow, match=r"less than 1\.0 KiB a second"):
        rate.add(1, 1)


@pytest.mark.parametrize("begin", [b"", OK, OK + b"Content-Length: 4999\r\n\r\n", b"HTTP/1.1 "])
def test_a_server_that_drips_is_given_up(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "WINDOW", 0.4)
    start = time.monotonic()
    with dripping(begin, b"x", 0.05) as host, pytest.raises(TooSlow):
        ask(host)
    assert 0.4 <= time.monotonic() - start < 5


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_accepts_and_sends_nothing_is_given_up(scheme: str) -> None:
    start = time.monotonic()
    with dripping(b"", b"", 0) as host, pytest.raises(OSError, match="timed out"):
        ask(host, Limits(5000, silence=0.3), scheme)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x", "gopher://x"])
def test_a_redirect_leads_to_no_other_protocol(target: str) -> None:
    with (
        dripping(f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode(), b"", 0) as host,
        pytest.raises((WrongContent, urllib.error.HTTPError)),
    ):
        ask(host)


def test_no_other_protocol_is_known() -> None:
    for url in ("file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"):
        with pytest.raises(urllib.error.URLError, match="unknown url type"):
            read_url(urllib.request.Request(url), SMALL)  # noqa: S310


WAITING: dict[str, Callable[[str], Any]] = {
    "headers": lambda host: ask(host, Limits(5000)),
    "handshake": lambda host: ask(host, Limits(5000), "https"),
    "kept handshake": lambda host: http_client.read_over_kept_connection(
        urllib.request.Request(f"https://{host}/"), Limits(5000)
    ),
}


@pytest.mark.parametrize("phase", [*WAITING, "body", "name server"])
def test_the_first_interruption_ends_all_connections(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the main thread and in those of `parallel`; a thread that waits for a name server cannot be ended itself."""

    def find_no_address(*_: object) -> None:
        time.sleep(4)
        raise OSError

    if phase == "name server":
        monkeypatch.setattr(socket, "create_connection", find_no_address)
    begin = OK + b"Content-Length: 4999\r\n\r\n" if phase == "body" else b""
    work = WAITING.get(phase, WAITING["headers"])
    before = _waiting()
    with dripping(begin, b"", 0) as host:
        for run in (lambda: parallel(work, [host] * 4, 4), lambda: work(host)):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            start = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                run()
            assert 0.2 < time.monotonic() - start < 1.5
        if phase != "name server":
            deadline = time.monotonic() + 2
            while _waiting() > before and time.monotonic() < deadline:
                time.sleep(0.01)
            assert _waiting() <= before


def test_a_stop_just_before_the_connection_is_known_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = http_client._Guard(SMALL)

    class Late(socket.socket):
        def fileno(self) -> int:
            guard.stop()
            return super().fileno()

    monkeypatch.setattr(socket, "create_connection", lambda *_: Late())
    with pytest.raises(InterruptedError):
        guard._connect(("host", 80), 1)


def test_the_time_to_write_what_came_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "WINDOW", 0.2)
    with (
        dripping(OK + b"Content-Length: 3\r\n\r\n", b"xxx", 0) as host,
        open_url(urllib.request.Request(f"http://{host}/"), SMALL) as answer,
    ):
        time.sleep(0.4)
        assert b"".join(http_client.blocks(answer, 3)) == b"xxx"


def _waiting() -> int:
    """Threads of `parallel` that still run."""
    return sum("take" in thread.name for thread in threading.enumerate())
