"""Asking a registry for a digest, against a small one on loopback that asks for a token as Docker Hub does."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.inspection import inspection
from toolkit.pins.bases.registry import Reference, fetch_digest, parse_reference
from toolkit.support.errors import CheckFailed, ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST = b'{"schemaVersion": 2}'
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"


class Registry(BaseHTTPRequestHandler):
    """`open/…` is for all, `token/…` for who has a token, `private/…` for nobody, `liar/…` names a wrong digest."""

    def do_GET(self) -> None:
        if self.path.startswith("/token?"):
            assert "scope=repository%3Atoken%2Fimage%3Apull" in self.path
            self.answer(200, json.dumps({"token": "secret"}).encode())
        elif "/none/" in self.path:
            self.answer(404, b"{}")
        elif "/broken/" in self.path:
            self.answer(500, b"")
        elif "/private/" in self.path or ("/token/" in self.path and self.headers["Authorization"] != "Bearer secret"):
            realm = f"http://{self.headers['Host']}/token"
            challenge = f'Bearer realm="{realm}",service="s",scope="repository:token/image:pull"'
            self.answer(401, b"", {"WWW-Authenticate": challenge})
        else:
            assert "application/vnd.oci.image.index.v1+json" in self.headers["Accept"]
            said = f"sha256:{'0' * 64}" if "/liar/" in self.path else DIGEST
            self.answer(200, MANIFEST, {"Docker-Content-Digest": said})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ubuntu", ("docker.io", "library/ubuntu", "latest")),
        ("ubuntu:22.04", ("docker.io", "library/ubuntu", "22.04")),
        ("tensorflow/tensorflow:2.15.0-gpu", ("docker.io", "tensorflow/tensorflow", "2.15.0-gpu")),
        ("docker.io/a/b", ("docker.io", "a/b", "latest")),
        ("nvcr.io/nvidia/jax:24.10-py3", ("nvcr.io", "nvidia/jax", "24.10-py3")),
        ("localhost/a:1", ("localhost", "a", "1")),
        ("127.0.0.1:5000/lab/base:1.0@sha256:00", ("127.0.0.1:5000", "lab/base", "1.0")),
    ],
)
def test_a_reference_has_a_host_a_repository_and_a_tag(text: str, parts: tuple[str, str, str]) -> None:
    assert parse_reference(text) == Reference(*parts)


@pytest.mark.parametrize("image", ["open/image:1", "token/image:1"])
@pytest.mark.index
def test_the_digest_is_of_what_the_tag_names(address: str, image: str) -> None:
    assert fetch_digest(f"{address}/{image}") == DIGEST


@pytest.mark.index
def test_missing_or_private_image_is_reported(address: str) -> None:
    with pytest.raises(CheckFailed, match="no image"):
        fetch_digest(f"{address}/none/image:1")
    with pytest.raises(CheckFailed, match="login"):
        fetch_digest(f"{address}/private/image:1")


def test_faulty_or_unreachable_registry_is_an_error(address: str) -> None:
    for image in (f"{address}/broken/image:1", f"{address}/liar/image:1", "127.0.0.1:9/image:1"):
        with pytest.raises(ProgramFailed) as caught:
            fetch_digest(image)
        assert caught.value.code == "registry-unreachable"


@pytest.mark.index
def test_untrusted_certificate_is_reported_until_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "PIP_CERT", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with inspection(tmp_path) as network:
        monkeypatch.setenv("https_proxy", network.proxy)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere.pem")
        with pytest.raises(ProgramFailed, match=r"nvcr\.io cannot be used: the certificate .* not trusted") as caught:
            fetch_digest("nvcr.io/nvidia/jax:1")
        assert caught.value.code == "certificate"
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(network.authority))
        with pytest.raises(CheckFailed, match="no image"):
            fetch_digest("nvcr.io/nvidia/jax:1")
