"""Servers and a resolver for the tests of package indexes."""

from __future__ import annotations

import re
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.small_index import Open
from tests.real.company import file_server, make_wheel, serving
from toolkit.pins.index.uv import Uv, open_uv

if TYPE_CHECKING:
    from collections.abc import Iterator


class Refusing(BaseHTTPRequestHandler):
    """Answers with the status that is the first part of the path."""

    def do_GET(self) -> None:
        status = int(self.path.split("/")[1])
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="company"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815 - the name is that of http.server

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


@pytest.fixture(scope="module")
def refusing_server() -> Iterator[str]:
    with serving(Refusing) as address:
        yield address


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uv:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return open_uv(tmp_path)


class InParts(Open):
    """A server that knows ranges, and writes down what it was asked."""

    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        span = self.headers.get("Range")
        type(self).asked.append((Path(self.path).name, span))
        path = Path(self.translate_path(self.path))
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", span or "")
        if not found or not path.is_file():
            SimpleHTTPRequestHandler.do_GET(self)
            return
        content = path.read_bytes()
        start = int(found[1]) if found[1] else max(0, len(content) - int(found[2]))
        part = content[start : int(found[2]) + 1] if found[1] else content[start:]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


@pytest.fixture
def wheel_server(tmp_path: Path) -> Iterator[tuple[str, Path, list[tuple[str, str | None]]]]:
    """The address of a directory with a wheel, the directory, and what was asked."""
    InParts.asked = []
    make_wheel(tmp_path, "thing", "1.0", 'torch>=2.6; extra == "torch"')
    directory = tmp_path / "simple" / "thing"
    with file_server(directory, InParts) as address:
        yield address, directory, InParts.asked
