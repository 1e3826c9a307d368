"""Package files, downloaded into the store from servers that fail, lie, or stop."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, ClassVar

import pytest

from tests.real.company import serving
from toolkit.pins.index import downloads
from toolkit.pins.index.downloads import bring_files, kept_files
from toolkit.pins.index.locate import Wanted
from toolkit.recipes.model import Index
from toolkit.store.store import Store
from toolkit.support import http_client
from toolkit.support.errors import MissingOnHost, ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTENT = {f"p{number}": f"content {number} ".encode() * 5000 for number in range(8)}
WANTED = [
    Wanted(name, f"{name}-1.0-py3-none-any.whl", hashlib.sha256(content).hexdigest())
    for name, content in CONTENT.items()
]
pytestmark = pytest.mark.index


class Mirror(BaseHTTPRequestHandler):
    """An index at /simple; `faults` says by package what its file's next answers are."""

    faults: ClassVar[dict[str, list[str]]] = {}
    asked: ClassVar[list[str]] = []
    sizes: ClassVar[int] = True  # or the one that it claims of each file
    lock = threading.Lock()

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple":
            name = parts[1]
            file = f"{name}-1.0-py3-none-any.whl"
            row = {"filename": file, "url": f"/files/{name}/{file}"}
            if self.sizes:
                row["size"] = self.sizes if self.sizes > 1 else len(CONTENT.get(name, b""))
            self._send(json.dumps({"files": [row] if name in CONTENT else []}).encode())
            return
        name = parts[1]
        with self.lock:
            self.asked.append(name)
            fault = self.faults[name].pop(0) if self.faults.get(name) else ""
        if fault.isdecimal():
            self.send_error(int(fault))
        elif fault == "endless":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(bytes(1 << 16))
        elif fault.startswith(("file:", "https:")):
            self.send_response(302)
            self.send_header("Location", fault)
            self.end_headers()
        elif fault == "drip":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b"x")
                    time.sleep(0.05)
        elif fault == "short":
            self._send(CONTENT[name][:1000], length=len(CONTENT[name]))
        else:
            self._send(b"lies" if fault == "lie" else CONTENT[name])

    def _send(self, content: bytes, length: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    Mirror.faults, Mirror.asked = {}, []
    monkeypatch.setattr(downloads, "wait", lambda _seconds: None)
    for name in ("UV_INDEX_URL", "PIP_INDEX_URL", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(Mirror) as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{address}/simple")
        yield address


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_files_are_downloaded_once_and_found_by_hash(mirror: str, store: Store) -> None:
    told: list[tuple[int, int]] = []
    brought = bring_files(WANTED, (), store, lambda done, total: told.append((done, total)))
    whole = sum(map(len, CONTENT.values()))
    assert (brought.downloaded, told[-1]) == (whole, (whole, whole))
    assert {entry.path.read_bytes() for entry in brought.entries.values()} == set(CONTENT.values())
    assert bring_files(WANTED, (), store).downloaded == 0
    assert sorted(Mirror.asked) == sorted(CONTENT)
    assert kept_files(WANTED, store).keys() == {file.sha256 for file in WANTED}


def test_lost_connections_and_busy_servers_are_tried_again(mirror: str, store: Store) -> None:
    Mirror.faults = {"p0": ["503", "429"], "p1": ["short", "500"], "p2": ["short"]}
    assert len(bring_files(WANTED, (), store).entries) == len(WANTED)


@pytest.mark.parametrize(
    ("faults", "code", "text"),
    [
        (["lie"], "wrong-hash", "does not have the hash in the lock"),
        (["short"] * 4, "index-unreachable", "sent an incomplete answer"),
        (["404"], "index-not-found", "nothing found"),
        (["403"], "index-credentials", "refuses access"),
        (["500"] * 4, "index-unreachable", "returned status 500"),
        (["endless"], "answer-too-large", r"for p3-1.* sends more than 48\.8 KiB"),
        (["drip"] * 4, "index-unreachable", r"sends less than 1\.0 KiB a second"),
        (["file:///etc/hostname"], "index-unreachable", "returned status 302, which leads nowhere"),
    ],
)
def test_one_bad_file_has_one_message_and_all_others_are_kept(
    mirror: str, store: Store, faults: list[str], code: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "WINDOW", 0.5)
    Mirror.faults = {"p3": list(faults)}
    with pytest.raises(ProgramFailed, match=text) as caught:
        bring_files(WANTED, (), store)
    assert caught.value.code == code
    assert len(kept_files(WANTED, store)) == len(WANTED) - 1
    assert len(Mirror.asked) == len(WANTED) - 1 + len(faults), "a status of 4xx is final"


def test_the_first_interruption_ends_a_download_and_leaves_nothing(
    mirror: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mirror.faults = {name: ["drip"] for name in CONTENT}
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        bring_files(WANTED, (), store)
    assert time.monotonic() - start < 2.5
    assert not [path for path in store.own.rglob("*") if path.is_file() and path.name != ".trusted"]


def test_a_file_without_a_declared_size_has_a_largest_one(
    mirror: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "_LARGEST", 100_000)
    monkeypatch.setattr(Mirror, "sizes", False)
    Mirror.faults = {"p0": ["endless"]}
    with pytest.raises(ProgramFailed, match=r"sends more than 97\.7 KiB") as caught:
        bring_files(WANTED, (), store)
    assert caught.value.code == "answer-too-large"
    assert len(kept_files(WANTED, store)) == len(WANTED) - 1


def test_a_size_that_no_file_has_breaks_no_progress(mirror: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mirror, "sizes", 10**4000)
    shares: list[float] = []
    bring_files(WANTED, (), store, lambda done, total: shares.append(done / total))
    assert max(shares) < 1e-3


def test_several_reasons_are_all_named(mirror: str, store: Store) -> None:
    Mirror.faults = {"p1": ["lie"], "p2": ["404"]}
    with pytest.raises(ProgramFailed, match=r"2 package files could not be downloaded: p1-1.* nothing found") as caught:
        bring_files(WANTED, (), store)
    assert caught.value.code == "packages-not-downloaded"


def test_lying_index_does_not_hide_an_honest_one(mirror: str, store: Store) -> None:
    Mirror.faults = {"p0": ["lie"]}
    with serving(Mirror) as second:
        assert len(bring_files(WANTED[:1], [Index("second", f"{second}/simple")], store).entries) == 1


def test_file_that_no_index_lists_is_left_to_the_build(mirror: str, store: Store) -> None:
    other = Wanted("other", "other-1.0-py3-none-any.whl", "ab" * 32)
    brought = bring_files([other, WANTED[0]], (), store)
    assert (brought.unlisted, len(brought.entries)) == ((other,), 1)


def test_full_disk_ends_the_download_in_one_line(mirror: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(downloads._Download, "_write", full)
    with pytest.raises(MissingOnHost, match="no space left for package files") as caught:
        bring_files(WANTED, (), store)
    assert caught.value.code == "disk-full"


def test_credentials_of_an_index_are_in_no_message(mirror: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", mirror.replace("http://", "http://ann:s3cret@") + "/simple")
    Mirror.faults = {"p0": ["lie"]}
    with pytest.raises(ProgramFailed) as caught:
        bring_files(WANTED[:1], (), store)
    assert "s3cret" not in f"{caught.value.message} {caught.value.fix}"
