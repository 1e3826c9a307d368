"""A package index on this machine with wheels of a few hundred bytes: what uv and ctk ask it is real."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.real.company import file_server, make_wheel

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping, Sequence
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
