"""A small OCI registry on loopback: images, indexes, logins, and the ways in which a registry can fail.

Source: OCI Distribution Specification 1.1, and Docker's token authentication.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import ssl
import tarfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from toolkit.recipes.model import Base, Bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
IMAGE = "application/vnd.oci.image.manifest.v1+json"
DOCKER_IMAGE = "application/vnd.docker.distribution.manifest.v2+json"
USER, PASSWORD, TOKEN = "ann", "pass/word@47:x", "t0ken-of-the-tests"


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Registry:
    """What a registry holds and how it behaves. `login` is None, "basic" or "bearer"; `faults` are by repository:

    "slow", "no-head" (405), "no-digest" (no Docker-Content-Digest), "portal" (a page instead), "liar" (another
    manifest than the digest says), "limit" (429), "broken" (500), "other-host" (blobs are redirected to `elsewhere`),
    "other-site" (all is redirected to the address `elsewhere`).
    `asked` has method, path and Authorization header of each request.
    """

    login: str | None = None
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[tuple[str, str], tuple[str, bytes]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    elsewhere: str = ""
    address: str = ""
    realm: str = ""

    def image(self, name: str, *, architecture: str = "amd64", files: Mapping[str, bytes] | None = None) -> str:
        """Add an image as `repository:tag`, or without a tag; return its digest."""
        layer, plain = _layer(files or {"hello": name.encode()})
        system = {"architecture": architecture, "os": "linux", "config": {}}
        config = json.dumps({**system, "rootfs": {"type": "layers", "diff_ids": [sha256(plain)]}}).encode()
        parts = [{"mediaType": kind, "digest": sha256(part), "size": len(part)} for kind, part in (
            ("application/vnd.oci.image.config.v1+json", config),
            ("application/vnd.oci.image.layer.v1.tar+gzip", layer),
        )]  # fmt: skip
        self.blobs.update({sha256(part): part for part in (config, layer)})
        return self._add(name, IMAGE, {"schemaVersion": 2, "mediaType": IMAGE, "config": parts[0], "layers": parts[1:]})

    def index(self, name: str, images: Mapping[str, str], *, kind: str = INDEX) -> str:
        """Add an index of images (digests by GOARCH), with a build record as BuildKit adds it; return its digest."""
        repository = name.rpartition(":")[0]
        entries: list[dict[str, Any]] = []
        for architecture, digest in images.items():
            size = len(self.manifests[repository, digest][1])
            platform = {"architecture": architecture, "os": "linux"}
            entries.append({"mediaType": IMAGE, "digest": digest, "size": size, "platform": platform})
        record = {"mediaType": IMAGE, "digest": sha256(b"record"), "size": 6}
        entries.append({**record, "platform": {"architecture": "unknown", "os": "unknown"}})
        return self._add(name, kind, {"schemaVersion": 2, "mediaType": kind, "manifests": entries})

    def _add(self, name: str, kind: str, document: dict[str, Any]) -> str:
        repository, _, tag = name.partition(":")
        content = json.dumps(document).encode()
        for key in filter(None, (tag, sha256(content))):
            self.manifests[repository, key] = (kind, content)
        return sha256(content)

    def both(self, name: str) -> tuple[str, str, str]:
        """Add an index for both architectures; return the digests of index, amd64 and arm64 image."""
        repository = name.partition(":")[0]
        amd, arm = (
            self.image(repository, architecture=one, files={"a": one.encode() + name.encode()})
            for one in ("amd64", "arm64")
        )
        return self.index(name, {"amd64": amd, "arm64": arm}), amd, arm  # fmt: skip


def base_of(registry: Registry, name: str, **facts: object) -> Base:
    """A base `repository:tag` of a registry."""
    return Base(name, Bootstrap.DOCKER, f"{registry.address}/{name}", **facts)  # type: ignore[arg-type]


def _layer(files: Mapping[str, bytes]) -> tuple[bytes, bytes]:
    """A layer, compressed and plain."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text))
    return gzip.compress(content.getvalue(), mtime=0), content.getvalue()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_about: object) -> None:
        """A client that goes away is no error: some check only the first bytes of a blob."""


@contextmanager
def serving(registry: Registry, certificate: tuple[Path, Path] | None = None) -> Iterator[Registry]:
    """The registry at `registry.address`, up while the block runs; with a certificate and its key by TLS."""
    server = _Server(("127.0.0.1", 0), _handler(registry))
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    registry.address = f"127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    basic = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "")
            registry.asked.append((self.command, self.path, given))
            if self.path.startswith("/token?"):
                self.token(given, parse_qs(urlsplit(self.path).query))
            elif not self.allowed(given):
                self.answer(401, b'{"errors": [{"code": "UNAUTHORIZED"}]}', {"WWW-Authenticate": self.challenge()})
            elif self.path == "/v2/":
                self.answer(200, b"{}")
            else:
                _, _, *middle, kind, name = self.path.split("/")
                self.content("/".join(middle), kind, name)

        do_HEAD = do_GET  # noqa: N815 - the name is that of http.server

        def do_POST(self) -> None:
            """A token for an identity token (OAuth 2)."""
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            registry.asked.append(("POST", self.path, ""))
            right = form.get("refresh_token") == [PASSWORD] and form["grant_type"] == ["refresh_token"]
            self.answer(200 if right else 401, json.dumps({"access_token": TOKEN}).encode() if right else b"{}")

        def allowed(self, given: str) -> bool:
            return registry.login is None or given == {"basic": basic, "bearer": f"Bearer {TOKEN}"}[registry.login]

        def challenge(self) -> str:
            if registry.login == "basic":
                return 'Basic realm="tests"'
            repository = self.path.removeprefix("/v2/").partition("/manifests/")[0].partition("/blobs/")[0]
            realm = registry.realm or f"http://{registry.address}/token"
            return f'Bearer realm="{realm}",service="tests",scope="repository:{repository}:pull"'

        def token(self, given: str, query: dict[str, list[str]]) -> None:
            assert query["service"] == ["tests"]
            if given and given != basic:
                self.answer(401, b"{}")
                return
            # As Docker Hub: without a login there is a token, which opens no private repository.
            self.answer(200, json.dumps({"token": TOKEN if given else "for-nobody"}).encode())

        def content(self, repository: str, kind: str, name: str) -> None:
            fault = registry.faults.get(repository)
            if fault == "slow":
                time.sleep(30)
            elif fault == "no-head" and self.command == "HEAD":
                self.answer(405, b"")
                return
            elif fault in ("limit", "broken"):
                self.answer({"limit": 429, "broken": 500}[fault], b"")
                return
            elif fault == "portal":
                self.answer(200, b"<html>Welcome to the guest network</html>", {"Content-Type": "text/html"})
                return
            elif fault == "other-site":
                self.answer(307, b"", {"Location": f"{registry.elsewhere}{self.path}"})
                return
            if kind == "blobs":
                self.blob(name, fault)
            elif (repository, name) not in registry.manifests:
                self.answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')
            else:
                media_type, content = registry.manifests[repository, name]
                digest = {} if fault == "no-digest" else {"Docker-Content-Digest": sha256(content)}
                body = content.replace(b"2", b"3", 1) if fault == "liar" else content
                self.answer(200, body, {"Content-Type": media_type, **digest})

        def blob(self, digest: str, fault: str | None) -> None:
            if fault == "other-host":
                self.answer(307, b"", {"Location": f"http://{registry.elsewhere}{self.path}"})
            elif digest in registry.blobs:
                self.answer(200, registry.blobs[digest], {"Content-Type": "application/octet-stream"})
            else:
                self.answer(404, b"{}")

        def answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Tests print what they need."""

    return Handler
