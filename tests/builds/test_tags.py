"""The digest of a tag: asked for again where worth it, and remembered."""

from __future__ import annotations

import json
from http.client import RemoteDisconnected
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.builds import pulling, tags
from toolkit.builds.tags import ask_digest, remembered_digest
from toolkit.pins.bases import registry
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = f"sha256:{'ab' * 32}"


def http(status: int, **headers: str) -> HTTPError:
    return HTTPError("http://r", status, "", headers, None)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling.time, "sleep", lambda _: None)


def answering(monkeypatch: pytest.MonkeyPatch, *causes: BaseException) -> None:
    """A registry that fails with each of these once."""
    left = list(causes)

    def fetch(_reference: str) -> str:
        if left:
            raise ProgramFailed("no answer") from left.pop(0)
        return DIGEST

    monkeypatch.setattr(registry, "fetch_digest", fetch)


@pytest.mark.parametrize(
    "cause",
    [http(503), http(429), http(429, **{"Retry-After": "3"}), RemoteDisconnected(), URLError(ConnectionResetError())],
)
def test_what_passes_is_tried_again_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: BaseException
) -> None:
    notes: list[str] = []
    answering(monkeypatch, cause, cause, cause)
    assert ask_digest("a/b:1", tmp_path, notes.append) == DIGEST
    assert len(notes) == 3
    assert "asking for the digest of a/b:1 failed (no answer); trying again in" in notes[0]
    assert remembered_digest("a/b:1", tmp_path) == DIGEST
    answering(monkeypatch, *[cause] * 4)
    with pytest.raises(ProgramFailed, match="no answer"):
        ask_digest("a/b:1", tmp_path, notes.append)


@pytest.mark.parametrize("cause", [http(404), http(302), http(501), URLError(ConnectionRefusedError()), TimeoutError()])
def test_what_does_not_pass_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: BaseException
) -> None:
    answering(monkeypatch, cause)
    with pytest.raises(ProgramFailed, match="no answer"):
        ask_digest("a/b:1", tmp_path, lambda note: pytest.fail(note))
    assert remembered_digest("a/b:1", tmp_path) is None


def test_without_a_listener_there_is_one_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling.time, "sleep", lambda _: pytest.fail("it waits"))
    answering(monkeypatch, http(503))
    with pytest.raises(ProgramFailed, match="no answer"):
        ask_digest("a/b:1", tmp_path, None)
    assert ask_digest("a/b:1", tmp_path, None) == DIGEST


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("asked", "said"), [("900", "900 s"), ("1" * 15, "more than a day")])
def test_a_registry_that_asks_for_too_long_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, said: str, status: int
) -> None:
    answering(monkeypatch, http(status, **{"Retry-After": asked}))
    with pytest.raises(ProgramFailed) as caught:
        ask_digest("a/b:1", tmp_path, lambda note: pytest.fail(note))
    assert caught.value.fix == f"The registry asks to wait {said} before another attempt."


def test_a_note_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch)
    (tmp_path / "tags").write_text("in the way")
    assert ask_digest("a/b:1", tmp_path, print) == DIGEST
    assert remembered_digest("a/b:1", tmp_path) is None


def note_of(reference: object, digest: object) -> bytes:
    return json.dumps({"reference": reference, "digest": digest}).encode()


REFERENCES = st.sampled_from(["a/b:1", "a/b:2"]) | st.integers()
DIGESTS = st.just(DIGEST) | st.text(max_size=80) | st.none()


@given(st.binary(max_size=60) | st.builds(note_of, REFERENCES, DIGESTS))
def test_any_note_is_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    cache = tmp_path_factory.getbasetemp() / "cache"
    place = tags._place("a/b:1", cache)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    assert (remembered_digest("a/b:1", cache) == DIGEST) == (content == note_of("a/b:1", DIGEST))
