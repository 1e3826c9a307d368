"""A registry on loopback with one image, which counts what it is asked for, and lies or dies as a test wants."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import socket
import struct
import tarfile
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


@dataclass
class FaultyRegistry:
    """`faults` are taken from its start, one for each request of a layer: a status, `cut`, `lie`, or "" for none.

    `asked` counts the requests for manifests, the config and layers. `manifest_fault` is what happens to each request
    of a manifest, as long as it is set: a status, `lie`, `html`, `loop` (a redirect to itself) or `reset`.
    """

    address: str
    digest: str
    asked: Counter[str]
    faults: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    manifest_fault: str = ""

    @property
    def reference(self) -> str:
        return f"{self.address}/lab/tiny:1.0"


def busybox_layer(directory: Path, zeros: int = 0) -> bytes:
    """A layer with a shell: the smallest image in which a step runs. `zeros` are the bytes of one more file."""
    root = directory / "layer"
    (root / "bin").mkdir(parents=True)
    for name in ("dev", "proc", "sys", "tmp", "etc", "root", "opt", "home", "mnt", "var/tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin")
    for name in (
        "sh",
        "cat",
        "chmod",
        "cp",
        "echo",
        "env",
        "ls",
        "mkdir",
        "mv",
        "rm",
        "sleep",
        "test",
        "touch",
        "true",
    ):
        (root / "bin" / name).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.add(root, ".")
        if zeros:
            member = tarfile.TarInfo("zeros")
            member.size = zeros
            tar.addfile(member, io.BytesIO(bytes(zeros)))
    return content.getvalue()


@contextmanager
def faulty_registry(layer: bytes, *faults: str, **headers: str) -> Iterator[FaultyRegistry]:
    """The registry, with an image of one uncompressed `layer`, up while the block runs."""
    packed = gzip.compress(layer, 1, mtime=0)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": ["sh"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar+gzip", packed)],
        }
    ).encode()
    blobs = {_digest(config): config, _digest(packed): packed}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            if self.path == "/v2/":
                self._send(b"{}", "application/json")
            elif "/manifests/" in self.path and name in ("1.0", _digest(manifest)):
                known.asked["manifest"] += 1
                self._manifest(known.manifest_fault)
            elif "/blobs/" in self.path and name in blobs:
                known.asked["layer" if name == _digest(packed) else "config"] += 1
                fault = known.faults.pop(0) if name == _digest(packed) and known.faults else ""
                self._blob(blobs[name], fault)
            else:
                self.send_error(404)

        def _manifest(self, fault: str) -> None:
            if fault.isdigit():
                self._send(b"{}", "application/json", status=int(fault), more=known.headers)
            elif fault == "loop":
                self._send(b"", "text/plain", status=302, more={"Location": self.path})
            elif fault == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
            elif fault == "html":
                self._send(b"<!DOCTYPE html><p>Log in to this network</p>", "text/html")
            else:
                self._send(manifest.replace(b"{", b"{ ", fault == "lie"), MANIFEST_TYPE, _digest(manifest))

        def _blob(self, content: bytes, fault: str) -> None:
            if fault.isdigit():
                self._send(b"{}", "application/json", status=int(fault), more=known.headers)
            elif fault == "cut":
                self._send(content[: len(content) // 2], "application/octet-stream", length=len(content))
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                body = content if fault != "lie" else content[:-100] + bytes(100)
                self._send(body, "application/octet-stream")

        def _send(
            self, body: bytes, kind: str, digest: str = "", *, status: int = 200, length: int | None = None,
            more: dict[str, str] | None = None,
        ) -> None:  # fmt: skip
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            for name, value in (more or {}).items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
                self.wfile.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known = FaultyRegistry(f"127.0.0.1:{server.server_port}", _digest(manifest), Counter(), list(faults), dict(headers))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _descriptor(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}
