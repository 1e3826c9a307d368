"""A company's own packages: files behind a password, as an index (`simple/NAME/`) or on one page."""

from __future__ import annotations

import base64
import io
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

USER, PASSWORD = "ann", "pass/word@47"


class Guarded(SimpleHTTPRequestHandler):
    """A directory of files for one user, as a company's index."""

    def do_GET(self) -> None:
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") == wanted:
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="company"')
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


def make_wheel(index: Path, name: str, version: str, *requires: str) -> None:
    directory = index / "simple" / name
    directory.mkdir(parents=True, exist_ok=True)
    information = f"{name}-{version}.dist-info"
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {line}" for line in requires),
    ]
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", f"ORIGIN = 'company {version}'\n")
        wheel.writestr(f"{information}/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")


def make_source(index: Path, name: str, version: str) -> None:
    """A source distribution, and no wheel."""
    directory = index / "simple" / name
    directory.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        "PKG-INFO": metadata,
        "setup.py": f"from setuptools import setup\nsetup(name={name!r}, version={version!r}, py_modules=[{name!r}])\n",
        f"{name}.py": f"ORIGIN = 'company {version}'\n",
    }
    with tarfile.open(directory / f"{name}-{version}.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def file_server(directory: Path, handler: type[SimpleHTTPRequestHandler] = Guarded) -> AbstractContextManager[str]:
    """The address of a server of `directory`; to USER alone, unless `handler` is for everybody."""
    return serving(partial(handler, directory=str(directory)))


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """`http://127.0.0.1:PORT` of an HTTP server, up while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
