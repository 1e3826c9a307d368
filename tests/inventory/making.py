"""Small images made in a test: a directory filled from a table, squashed by mksquashfs, wrapped in a SIF header."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from toolkit.inventory.contents.environment import read_environment
from toolkit.inventory.contents.read import read_inventory
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolkit.inventory.contents.model import Inventory


def inventory_of(image: Path) -> Inventory:
    """What the image at a path holds."""
    with open_image(image) as rootfs:
        return read_inventory(rootfs)


def fill(directory: Path, files: dict[str, str | bytes]) -> Path:
    """Write `files` (path to content) under `directory`; "-> TARGET" makes a symlink, a final "/" a directory.

    A shared library of no content gets some: an empty one, which is damaged, is written as bytes.
    """
    for name, content in files.items():
        path = directory / name.lstrip("/")
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("-> "):
            path.symlink_to(content[3:])
        else:
            path.write_bytes(_as_bytes(content) if content != "" or ".so" not in path.name else b"not looked into")
    return directory


def squash(directory: Path, image: Path, *options: str) -> Path:
    """`directory` as a squashfs; `options` are mksquashfs's, and its pseudo files make what only root could."""
    command = ["mksquashfs", str(directory), str(image), "-noappend", "-quiet", "-no-progress", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return image


@dataclass(frozen=True)
class Part:
    """A data object for `write_sif`; file system, type and architecture are those of a partition."""

    data_type: int
    content: bytes
    name: str = ""
    file_system: int = 1
    partition_type: int = 2
    architecture: bytes = b"02\0"
    group: int = 1


def system(content: bytes, **more: object) -> Part:
    return Part(0x4004, content, **more)  # type: ignore[arg-type]


def overlay(content: bytes) -> Part:
    return Part(0x4004, content, partition_type=4)


def write_sif(path: Path, parts: list[Part]) -> Path:
    """A SIF file with these data objects, as apptainer lays it out."""
    table_at, room = 128, 48
    at = 32768
    descriptors, data = b"", b""
    for number, part in enumerate(parts, 1):
        at += -at % 4096
        extra = struct.pack("<ii3s", part.file_system, part.partition_type, part.architecture)
        descriptors += struct.pack(
            "<i?III7q128s384s", part.data_type, True, number, 0xF0000000 | part.group, 0,
            at, len(part.content), len(part.content), 0, 0, 0, 0,
            part.name.encode(), extra if part.data_type == 0x4004 else b"",
        )  # fmt: skip
        data = data.ljust(at - 32768, b"\0") + part.content
        at += len(part.content)
    header = struct.pack(
        "<32s10s3s3s16s8q", b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC\0", b"01\0", b"02\0", bytes(range(16)),
        0, 0, room - len(parts), room, table_at, room * 585, 32768, len(data),
    )  # fmt: skip
    path.write_bytes((header.ljust(table_at, b"\0") + descriptors).ljust(32768, b"\0") + data)
    return path


def python_files(minor: str = "3.11", prefix: str = "usr/local") -> dict[str, str | bytes]:
    """What makes a prefix look like a Python, and the image like Linux on x86_64."""
    elf = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + bytes(44)
    return {
        f"{prefix}/bin/python{minor}": elf + f"\0{minor}.7\0".encode(),
        f"{prefix}/bin/python3": f"-> python{minor}",
        f"{prefix}/lib/python{minor}/site-packages/": "",
        "etc/os-release": 'ID=debian\nVERSION_ID="12"\n',
    }


def _as_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def distribution(
    name: str, version: str, directory: str, files: Mapping[str, str | bytes] | None = None, extra: str = ""
) -> dict[str, str | bytes]:
    """An installed wheel: its files, and a dist-info whose RECORD lists them with their hashes."""
    from base64 import urlsafe_b64encode
    from hashlib import sha256

    information = f"{name.replace('-', '_')}-{version}.dist-info"
    files = files or {}
    rows = [
        f"{path},sha256={urlsafe_b64encode(sha256(_as_bytes(text)).digest()).rstrip(b'=').decode()},{len(_as_bytes(text))}"
        for path, text in files.items()
    ]
    return {
        **{f"{directory}/{path}": text for path, text in files.items()},
        f"{directory}/{information}/METADATA": f"Name: {name}\nVersion: {version}\n{extra}\nA text.\n",
        f"{directory}/{information}/RECORD": "\n".join([*rows, f"{information}/RECORD,,", ""]),
        f"{directory}/{information}/INSTALLER": "pip\n",
    }


def variables_after(*scripts: str) -> dict[str, str]:
    """The variables of an image that has these scripts, and no other file."""
    texts = {f"{number}-x.sh": script for number, script in enumerate(scripts)}
    image = SimpleNamespace(
        names=lambda directory: list(texts),
        read_text=lambda path, limit: texts[path.rpartition("/")[2]],
        **dict.fromkeys(("exists", "is_file", "is_directory"), lambda path: False),
    )
    variables, _ = read_environment(image)  # type: ignore[arg-type]
    return variables
