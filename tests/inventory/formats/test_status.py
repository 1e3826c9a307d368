"""Owner, mode, links and attributes out of a squashfs, against what mksquashfs was given."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, squash
from toolkit.inventory.formats.squashfs import Squashfs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_status_of_each_type(tmp_path: Path, compression: str) -> None:
    top = fill(tmp_path / "t", {"f": "x", "d/g": "y", "l": "-> f", "long": "z"})
    os.link(top / "f", top / "d/second")
    os.mkfifo(top / "pipe", 0o600)
    os.setxattr(top / "long", "user.long", b"v" * 2000)
    os.setxattr(top / "d", "user.color", b"red")
    os.utime(top / "f", (7, 7))
    # A number of owners that needs more than one entry of the table, and devices that only root makes.
    pseudo = ["-p", "d m 2755 33 70000", "-p", "null c 666 0 0 1 3", "-p", "disk b 660 0 6 7 0"]
    with_owners = squash(top, tmp_path / "t.sqfs", "-comp", compression, *pseudo)
    image = Squashfs(with_owners)
    found = image.children(image.root)
    files = {name: image.status(entry) for name, entry in found.items()}
    assert (files["f"].mode, files["f"].links, files["f"].modified) == (stat.S_IFREG | 0o644, 2, 7)
    directory = files["d"]
    assert (directory.mode, directory.uid, directory.gid) == (stat.S_IFDIR | 0o2755, 33, 70000)
    assert stat.S_ISLNK(files["l"].mode)
    assert stat.S_IFMT(files["pipe"].mode) == stat.S_IFIFO
    assert files["null"].mode == stat.S_IFCHR | 0o666
    assert (files["disk"].mode, files["disk"].gid) == (stat.S_IFBLK | 0o660, 6)
    assert files["long"].attributes == {"user.long": b"v" * 2000}
    image.close()


def test_attributes_that_are_stored_elsewhere(tmp_path: Path) -> None:
    """mksquashfs stores a value once, and refers to it from other files."""
    top = fill(tmp_path / "t", {str(number): "x" for number in range(20)})
    for number in range(20):
        os.setxattr(top / str(number), "user.same", b"v" * 200)
        os.setxattr(top / str(number), "user.own", str(number).encode())
    image = Squashfs(squash(top, tmp_path / "t.sqfs"))
    for name, entry in image.children(image.root).items():
        assert image.status(entry).attributes == {"user.same": b"v" * 200, "user.own": name.encode()}
    image.close()
