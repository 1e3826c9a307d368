"""Images for another architecture, as small as ctk reads them: the first bytes of an ELF file as their shell."""

from __future__ import annotations

import json
import platform
import tarfile
from typing import TYPE_CHECKING

from tests.pins.bases import oci

if TYPE_CHECKING:
    from pathlib import Path

HOST = platform.machine()
FOREIGN = {"x86_64": "aarch64", "aarch64": "x86_64"}[HOST]
GO = {"x86_64": "amd64", "aarch64": "arm64"}
_MACHINES = {"x86_64": 62, "aarch64": 183}


def program(architecture: str) -> bytes:
    """The header of a program: 64-bit, little-endian, e_machine."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + _MACHINES[architecture].to_bytes(2, "little") + bytes(44)


def sandbox(path: Path, architecture: str = FOREIGN, *, python: bool = False) -> Path:
    """A sandbox directory with a shell, and a Python to be found."""
    files = {"bin/sh": program(architecture)}
    if python:
        files |= {
            "usr/bin/python3.11": program(architecture),
            "usr/lib/python3.11/os.py": b"",
            "usr/lib/python3/dist-packages/pip-23.0.1.dist-info/METADATA": b"Name: pip\nVersion: 23.0.1\n",
        }
    (path / ".singularity.d").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
        (path / name).chmod(0o755)
    return path


def docker_archive(path: Path, architecture: str = FOREIGN, *, mode: str = "w") -> Path:
    """What `docker save` writes, without a layer."""
    directory = path.with_suffix(".d")
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps({"architecture": GO[architecture], "os": "linux"}))
    manifest = [{"Config": "config.json", "RepoTags": ["team:1"], "Layers": []}]
    (directory / "manifest.json").write_text(json.dumps(manifest))
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name in ("config.json", "manifest.json"):
            archive.add(directory / name, name)
    return path


def layout(path: Path, *architectures: str) -> Path:
    """An OCI layout of one image, or of an index."""
    registry = oci.Registry()
    images = {GO[one]: registry.image(f"a/b:{one}", architecture=GO[one]) for one in architectures}
    digest = next(iter(images.values())) if len(images) == 1 else registry.index("a/b:all", images)
    (path / "blobs/sha256").mkdir(parents=True)
    blobs = {oci.sha256(content): content for _, content in registry.manifests.values()} | registry.blobs
    for name, content in blobs.items():
        (path / "blobs/sha256" / name.removeprefix("sha256:")).write_bytes(content)
    kind = oci.IMAGE if len(images) == 1 else oci.INDEX
    (path / "index.json").write_text(json.dumps({"manifests": [{"mediaType": kind, "digest": digest}]}))
    return path
