"""A network whose proxy inspects TLS, as a university's or a firm's: its certificates are signed by a private CA.

The proxy wants a user and a password. Behind it, whatever host is asked for, is one package index with one wheel.
"""

from __future__ import annotations

import base64
import hashlib
import io
import ssl
import subprocess
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTS = ("pypi.org", "files.pythonhosted.org", "registry-1.docker.io", "nvcr.io")
USER, PASSWORD = "ann", "S3CRET$HOME`id`"
WHEEL = "private_thing-1.0-py3-none-any.whl"


@dataclass(frozen=True)
class Inspection:
    """The proxy's address with its credentials, the CA's certificate, and what was asked of the proxy."""

    proxy: str
    authority: Path
    asked: list[str]


@contextmanager
def inspection(directory: Path, *, expired: bool = False) -> Iterator[Inspection]:
    """The network, up while the block runs. `expired`: the servers' certificate was valid in 2020."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificates(directory, expired=expired))
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(context, _wheel(), asked))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Inspection(
            f"http://{USER}:{quote(PASSWORD, safe='$')}@127.0.0.1:{server.server_address[1]}",
            directory / "private-ca.pem",
            asked,
        )
    finally:
        server.shutdown()
        server.server_close()


def _certificates(directory: Path, *, expired: bool) -> tuple[Path, Path]:
    """A server's certificate and key, signed by a new CA, `private-ca.pem`."""
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    (directory / "names").write_text(f"subjectAltName={names}\n")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    sign = ["-CA", "private-ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
    if expired:  # only `openssl ca` sets both dates
        (directory / "index").touch()
        (directory / "serial").write_text("01\n")
        (directory / "ca.cnf").write_text(
            "[ca]\ndefault_ca = one\n[one]\ndatabase = index\nserial = serial\nnew_certs_dir = .\n"
            "default_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n"
        )
    signed = (
        ["x509", "-req", "-in", "server.csr", *sign, "-out", "server.pem"]
        if not expired
        else [
            *("ca", "-batch", "-config", "ca.cnf", "-cert", "private-ca.pem", "-keyfile", "ca.key"),
            *("-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-extfile", "names"),
            *("-in", "server.csr", "-out", "server.pem", "-notext"),
        ]
    )
    for line in (
        [
            *("req", "-x509", *new_key, "-days", "2", "-subj", "/CN=Private CA of the tests"),
            *("-addext", "keyUsage=critical,keyCertSign", "-keyout", "ca.key", "-out", "private-ca.pem"),
        ],
        ["req", *new_key, "-subj", "/CN=proxy", "-keyout", "server.key", "-out", "server.csr"],
        signed,
    ):
        subprocess.run(["openssl", *line], cwd=directory, check=True, capture_output=True)
    (directory / "private-ca.pem").chmod(0o644)
    return directory / "server.pem", directory / "server.key"


def _wheel() -> bytes:
    files = {
        "private_thing.py": "ANSWER = 42\n",
        "private_thing-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: private-thing\nVersion: 1.0\n",
        "private_thing-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "private_thing-1.0.dist-info/RECORD"
    files[record] = "".join(f"{name},,\n" for name in (*files, record))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def _handler(context: ssl.SSLContext, wheel: bytes, asked: list[str]) -> type[BaseHTTPRequestHandler]:
    page = f'<a href="/{WHEEL}#sha256={hashlib.sha256(wheel).hexdigest()}">{WHEEL}</a>'.encode()
    expected = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self) -> None:
            if self.headers["Proxy-Authorization"] != expected:
                self.send_error(407)
                return
            self.send_response(200)
            self.end_headers()
            try:
                self.connection = context.wrap_socket(self.connection, server_side=True)
            except OSError:  # the client does not trust this certificate
                self.close_connection = True
                return
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
            self.close_connection = False

        def do_GET(self) -> None:
            asked.append(self.path)
            answers = {"/simple/private-thing/": ("text/html", page), f"/{WHEEL}": ("application/zip", wheel)}
            kind, body = answers.get(self.path, ("text/plain", b"nothing here"))
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name is that of http.server

        def log_message(self, *_arguments: object) -> None:
            """Tests print what they need."""

    return Handler
