"""Which requests are repeated, and when."""

from __future__ import annotations

import errno
import ssl
import urllib.error
from email.message import Message
from http.client import IncompleteRead

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.pins.index.retrying import is_temporary, repeat


def status(code: int, retry_after: str | None = None) -> urllib.error.HTTPError:
    headers = Message()
    if retry_after is not None:
        headers["Retry-After"] = retry_after
    return urllib.error.HTTPError("https://index.example/", code, "", headers, None)


@pytest.mark.parametrize(
    ("error", "temporary"),
    [
        (status(503), True),
        (status(429), True),
        (status(404), False),
        (status(401), False),
        (ConnectionResetError(), True),
        (urllib.error.URLError(ConnectionRefusedError()), True),
        (urllib.error.URLError(ssl.SSLCertVerificationError("certificate has expired")), False),
        (IncompleteRead(b""), True),
        (OSError(errno.ENOSPC, "No space left on device", "/scratch/file"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: Exception, temporary: bool) -> None:
    assert is_temporary(error) is temporary


def test_request_succeeds_after_two_failures() -> None:
    answers, waited = iter([ConnectionResetError(), status(503, "7"), "done"]), []

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert repeat(ask, waited.append) == "done"
    assert waited[0] < 1
    assert waited[1] == 7


def test_last_failure_is_raised() -> None:
    def ask() -> None:
        raise status(502)

    with pytest.raises(urllib.error.HTTPError):
        repeat(ask, lambda _seconds: None)


@given(st.text(st.characters(exclude_characters="\r\n\x00")))
def test_any_retry_after_waits_a_minute_at_most(text: str) -> None:
    waited: list[float] = []
    answers = iter([status(429, text), None])

    def ask() -> None:
        if (answer := next(answers)) is not None:
            raise answer

    repeat(ask, waited.append)
    assert 0 < waited[0] <= 60
