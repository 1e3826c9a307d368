"""A package index on this machine with wheels of a few hundred bytes: what uv and ctk ask it is real."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from typing import TYPE_CHECKING

from packaging.utils import parse_sdist_filename, parse_wheel_filename

from tests.real.company import file_server, make_wheel, serving

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


class Open(SimpleHTTPRequestHandler):
    """Files for everybody."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


class Holding(Open):
    """An index that lets one client wait, once it asks for the `held` part of an address."""

    held: tuple[str, str]
    reached: threading.Event

    def do_GET(self) -> None:
        client, part = self.held
        if part in self.path and client in self.headers.get("User-Agent", ""):
            self.reached.set()
            self.rfile.read(1)  # until the client closes the connection
            return
        SimpleHTTPRequestHandler.do_GET(self)


@contextmanager
def serve_index(directory: Path, packages: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """The address of an index of `packages`: by name and version what each requires. Its pages are lists of files."""
    for name, versions in packages.items():
        module = name.replace("-", "_")
        for version, requires in versions.items():
            make_wheel(directory, module, version, *requires)
        if module != name:
            (directory / "simple" / name).symlink_to(module)
    with file_server(directory, Open) as address:
        yield f"{address}/simple"


@dataclass(frozen=True)
class Listed:
    """A file of an index as its page shows it, and what the release requires. `uploaded` is a time (PEP 700)."""

    file: str
    requires: tuple[str, ...] = ()
    python: str = ""
    yanked: bool = False
    uploaded: str = ""


class Pages(BaseHTTPRequestHandler):
    """Pages as JSON (PEP 691), and the files that they list; all of it by path."""

    protocol_version = "HTTP/1.1"
    content: Mapping[str, bytes]

    def do_GET(self) -> None:
        found = self.content.get(self.path)
        self.send_response(404 if found is None else 200)
        is_page = self.path.endswith("/")
        kind = "application/vnd.pypi.simple.v1+json" if is_page else "application/octet-stream"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(found or b"")

    do_HEAD = do_GET  # noqa: N815 - the name is that of http.server

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


@contextmanager
def serve_pages(files: Iterable[Listed]) -> Iterator[str]:
    """The address of an index whose pages tell Requires-Python, times and what is yanked, as PyPI's do."""
    content: dict[str, bytes] = {}
    pages: dict[str, list[dict[str, object]]] = {}
    for listed in files:
        parse = parse_wheel_filename if listed.file.endswith(".whl") else parse_sdist_filename
        name, version = parse(listed.file)[:2]
        path = f"/simple/{name}/{listed.file}"
        content[path] = _content(listed, name, str(version))
        row: dict[str, object] = {"filename": listed.file, "url": path, "yanked": listed.yanked}
        row["hashes"] = {"sha256": hashlib.sha256(content[path]).hexdigest()}
        row |= {"requires-python": listed.python} if listed.python else {}
        row |= {"upload-time": listed.uploaded} if listed.uploaded else {}
        pages.setdefault(name, []).append(row)
    for name, rows in pages.items():
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [], "files": rows}
        content[f"/simple/{name}/"] = json.dumps(page).encode()
    handler = type("ThesePages", (Pages,), {"content": content})
    with serving(handler) as address:
        yield f"{address}/simple"


def _content(listed: Listed, name: str, version: str) -> bytes:
    """A wheel without code, or a source distribution whose metadata is complete (PEP 643)."""
    lines = ["Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in listed.requires]
    lines += [f"Requires-Python: {listed.python}"] if listed.python else []
    extras = {extra for line in listed.requires for extra in re.findall(r"extra == ['\"]([\w.-]+)", line)}
    lines += [f"Provides-Extra: {extra}" for extra in sorted(extras)]
    metadata = "\n".join(lines) + "\n"
    buffer = io.BytesIO()
    if not listed.file.endswith(".whl"):
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for file, text in (("PKG-INFO", metadata), ("setup.py", "from setuptools import setup\nsetup()\n")):
                member = tarfile.TarInfo(f"{name}-{version}/{file}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        return buffer.getvalue()
    distribution, release, *_ = listed.file.split("-")
    information = f"{distribution}-{release}.dist-info"
    tag = "-".join(listed.file.removesuffix(".whl").split("-")[-3:])
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr(f"{information}/METADATA", metadata)
        wheel.writestr(f"{information}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{information}/RECORD", "")
    return buffer.getvalue()
