"""One set of files with everything that a reader must get right."""

from __future__ import annotations

import os
import random
import struct
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, squash
from toolkit.inventory.formats.tree import EntryKind
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.inventory.formats.rootfs import Rootfs


RANDOM = random.Random(7)  # noqa: S311


LARGE = b"".join(bytes([RANDOM.randrange(256)]) * RANDOM.randrange(1, 400) for _ in range(6000))


FILES = {
    "etc/hello": "hello\n",
    "etc/empty": b"",
    "usr/lib/large.so": LARGE,
    "usr/lib/holes": b"x" + bytes(400_000) + b"y",
    "usr/lib/link.so": "-> large.so",
    "lib": "-> usr/lib",
    "absolute": "-> /etc/hello",
    "outside": "-> ../../../../etc/hello",
    "loop/a": "-> b",
    "loop/b": "-> a",
    "dangling": "-> /nowhere",
    **{f"many/file-{number:05}": f"{number}" for number in range(1500)},
}


def check(rootfs: Rootfs) -> None:
    """That the image holds FILES, byte for byte, and that paths lead where they should."""
    assert rootfs.read("/etc/hello") == b"hello\n"
    assert rootfs.read("/etc/empty") == b""
    assert rootfs.read("/lib/link.so") == LARGE
    assert rootfs.read("/usr/lib/holes") == b"x" + bytes(400_000) + b"y"
    assert rootfs.resolve("/lib/link.so") == "/usr/lib/large.so"
    assert rootfs.read("/absolute") == rootfs.read("/outside") == b"hello\n"
    assert rootfs.readlink("/lib/link.so") == "large.so"
    assert rootfs.readlink("/etc/hello") is None
    for path in ("/loop/a", "/dangling", "/etc/hello/further", "/etc/nothing"):
        assert rootfs.resolve(path) is None
        assert rootfs.read(path) is None
    assert rootfs.kind("/usr") is EntryKind.DIRECTORY
    assert rootfs.size("/usr/lib/large.so") == len(LARGE)
    assert len(rootfs.names("/many")) == 1500
    assert rootfs.read("/many/file-01499") == b"1499"
    assert rootfs.names("/etc/hello") == ()
    file = rootfs.open("/usr/lib/large.so")
    assert file is not None
    with file:
        for _ in range(50):
            start, length = RANDOM.randrange(len(LARGE)), RANDOM.randrange(1, 70_000)
            file.seek(start)
            assert file.read(length) == LARGE[start : start + length]
    with pytest.raises(WrongInput, match="at most 10 are expected"):
        rootfs.read("/usr/lib/large.so", limit=10)


def layer(tmp_path: Path, name: str, files: dict[str, str | bytes], *pseudo: str, opaque: str = "") -> bytes:
    options = [word for line in pseudo for word in ("-p", line)]
    directory = fill(tmp_path / name, files)
    if opaque:
        os.setxattr(directory / opaque, "user.something", b"y" * 200)
        os.setxattr(directory / opaque, "user.overlay.opaque", b"y")
    return squash(directory, tmp_path / f"{name}.squashfs", *options).read_bytes()


def claimed(image: Path, at: int, kind: str, value: int) -> Path:
    content = bytearray(image.read_bytes())
    struct.pack_into(kind, content, at, value)
    image.write_bytes(content)
    return image
