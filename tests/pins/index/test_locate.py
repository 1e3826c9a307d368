"""Where the files of a lock are, by the pages of several indexes."""

from __future__ import annotations

import ssl
import urllib.error
from http.client import IncompleteRead
from typing import TYPE_CHECKING

import pytest

from tests.hostile_server import dripping
from tests.pins.small_index import serve_index
from tests.real.company import serving
from toolkit.pins.index import remote
from toolkit.pins.index.locate import Locator, Wanted, page_addresses, unreachable
from toolkit.recipes.model import Index, IndexKind

if TYPE_CHECKING:
    from pathlib import Path

SHA = "ab" * 32
FILE = "thing-1.0-py3-none-any.whl"
WANTED = Wanted("thing", FILE, SHA)


@pytest.fixture(autouse=True)
def _no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "file:///nowhere")


def test_index_of_a_package_is_the_only_one_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://ann:secret@pypi.example/simple/")
    own = Index("own", "https://own.example/simple", ("thing",))
    page = Index("page", "https://page.example/all.html", kind=IndexKind.FIND_LINKS)
    assert list(page_addresses("thing", [own, page])) == ["https://own.example/simple/thing/"]
    assert list(page_addresses("other", [own, page])) == [
        "https://page.example/all.html",
        "https://pypi.example/simple/other/",
    ]


@pytest.mark.index
def test_bad_indexes_do_not_hide_the_good_one(tmp_path: Path) -> None:
    with serving(_json('{"files": 1}')) as broken, serve_index(tmp_path, {"thing": {"1.0": []}}) as good:
        indexes = [Index("dead", "http://127.0.0.1:9/simple"), Index("broken", broken), Index("good", good)]
        located = Locator(indexes, lambda _seconds: None).locate(WANTED)
    assert [place.url for place in located.places] == [f"{good}/thing/{FILE}"]
    assert [problem.code for problem in located.problems] == ["index-unreachable", "malformed-index-page"]


@pytest.mark.index
def test_dead_index_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    locator = Locator([Index("dead", "http://127.0.0.1:9/simple")], waited.append)
    first, second = (locator.locate(Wanted(name, FILE, SHA)) for name in ("thing", "other"))
    assert first.problems == second.problems
    assert len(waited) == 3


@pytest.mark.index
def test_file_with_another_hash_than_the_lock_is_not_taken() -> None:
    page = f'{{"files": [{{"filename": "{FILE}", "url": "{FILE}", "hashes": {{"sha256": "{"cd" * 32}"}}}}]}}'
    with serving(_json(page)) as address:
        located = Locator([Index("lying", address)]).locate(WANTED)
    assert located.places == ()
    assert "another hash than the lock" in located.problems[0].message


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (urllib.error.URLError(ssl.SSLCertVerificationError("certificate has expired")), "certificate", "is expired"),
        (IncompleteRead(b""), "index-unreachable", "incomplete answer"),
        (TimeoutError("timed out"), "index-unreachable", "timed out"),
    ],
)
def test_each_failure_has_its_message(error: Exception, code: str, text: str) -> None:
    found = unreachable("the package index https://index.example", error)
    assert found.code == code
    assert text in found.message


@pytest.mark.parametrize("url", ["file:///tmp/thing", "FTP://127.0.0.1/thing", "data:,thing"])
def test_a_link_of_an_index_leads_to_no_other_protocol(url: str) -> None:
    page = f'{{"files": [{{"filename": "{FILE}", "url": "{url}"}}, {{"filename": "{FILE}", "url": "right"}}]}}'
    with serving(_json(page)) as address:
        located = Locator([Index("lying", f"{address}/simple")]).locate(WANTED)
    assert [place.url for place in located.places] == [f"{address}/simple/thing/right"]
    assert [problem.code for problem in located.problems] == ["unsafe-link"]


def test_a_page_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_LARGEST", 1000)
    with dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"<a>" * 1000, 0) as host:
        located = Locator([Index("endless", f"http://{host}/simple")]).locate(WANTED)
    assert [problem.code for problem in located.problems] == ["answer-too-large"]
    assert "sends more than 1000 B" in located.problems[0].message


def _json(text: str) -> type:
    from http.server import BaseHTTPRequestHandler

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """Be quiet."""

    return Answer
