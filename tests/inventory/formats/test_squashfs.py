"""Squashfs: every layout, and damaged ones."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, squash
from tests.inventory.one_image import check, claimed
from toolkit.gpu.audit import audit_image
from toolkit.gpu.facts import TargetMachine
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.inventory.formats.tree import EntryKind
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def inode_at(image: Path, *names: str) -> int:
    """Where, in an image without compression and of one metadata block, the inode of a path stands."""
    tree = Squashfs(image)
    entry = tree.root
    for name in names:
        entry = tree.children(entry)[name]
    tree.close()
    (table,) = struct.unpack_from("<Q", image.read_bytes(), 64)
    return table + 2 + entry.reference


@pytest.mark.programs
def test_a_file_that_claims_to_be_four_gigabytes(tmp_path: Path) -> None:
    root = fill(tmp_path / "root", {"usr/file": b"x" * 77_777})
    image = squash(root, tmp_path / "x.squashfs", "-noI", "-noD", "-noF", "-no-fragments")
    claimed(image, inode_at(image, "usr", "file") + 28, "<I", 0xFFFFFFFF)
    with open_image(image) as rootfs:
        assert rootfs.size("/usr/file") == 0xFFFFFFFF
        with pytest.raises(WrongInput, match="at most"):
            rootfs.read("/usr/file")
        with pytest.raises(WrongInput, match="damaged"):
            rootfs.open("/usr/file")


@pytest.mark.programs
def test_a_directory_that_contains_itself(tmp_path: Path) -> None:
    """A directory whose inode points at its parent's listing: unsquashfs refuses it as well."""
    root = fill(tmp_path / "root", {"usr/a/b/c": b"x"})
    image = squash(root, tmp_path / "x.squashfs", "-noI", "-noD", "-noF")
    parent, directory = inode_at(image), inode_at(image, "usr")
    content = bytearray(image.read_bytes())
    content[directory + 16 : directory + 32] = content[parent + 16 : parent + 32]
    image.write_bytes(content)
    with open_image(image) as rootfs:
        assert rootfs.kind("/usr") is EntryKind.DIRECTORY
        with pytest.raises(WrongInput, match="a directory is in it twice"):
            list(rootfs.walk(lambda _path: True))
    with pytest.raises(WrongInput, match="a directory is in it twice"):
        audit_image(image, TargetMachine())


@pytest.mark.programs
def test_a_directory_with_two_names(tmp_path: Path) -> None:
    """Each level doubles the number of paths: thirty directories have as many as a disk has room for."""
    root = fill(tmp_path / "root", {"a/": b"", "b/c/d": b""})
    image = squash(root, tmp_path / "x.squashfs", "-noI", "-noD", "-noF")
    content = bytearray(image.read_bytes())
    first, second = (content.index(struct.pack("<HH", 1, 0) + name) - 4 for name in (b"a", b"b"))
    content[first : first + 4] = content[second : second + 4]
    image.write_bytes(content)
    with open_image(image) as rootfs, pytest.raises(WrongInput, match="a directory is in it twice"):
        list(rootfs.walk(lambda _path: True))


@pytest.mark.parametrize("compression", ["gzip", "zstd", "xz", "lz4", "lzo", "lzma"])
@pytest.mark.programs
def test_a_squashfs_of_every_compression(directory: Path, tmp_path: Path, compression: str) -> None:
    image = squash(directory, tmp_path / "image.squashfs", "-comp", compression)
    with open_image(image) as rootfs:
        assert rootfs.form == "squashfs"
        check(rootfs)


@pytest.mark.parametrize(
    "options",
    [("-noI", "-noD", "-noF"), ("-no-fragments",), ("-always-use-fragments",), ("-b", "4096"), ("-b", "1M", "-Xhc")],
    ids=" ".join,
)
@pytest.mark.programs
def test_squashfs_of_every_layout(directory: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    compression = ("-comp", "lz4") if "-Xhc" in options else ()
    with open_image(squash(directory, tmp_path / "image.squashfs", *compression, *options)) as rootfs:
        check(rootfs)
