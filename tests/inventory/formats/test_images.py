"""The readers: every form and compression gives the same files, and what is no image gets one clear message."""

from __future__ import annotations

import hashlib
import os
import random
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import Part, fill, overlay, squash, system, write_sif
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.sif import DataType, PartitionType, read_sif
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


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("sandbox"), FILES)


def test_a_sandbox(directory: Path) -> None:
    with open_image(directory) as rootfs:
        assert rootfs.form == "sandbox"
        check(rootfs)


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


@pytest.mark.programs
def test_a_flat_sif(directory: Path, tmp_path: Path) -> None:
    squashed = squash(directory, tmp_path / "image.squashfs").read_bytes()
    definition = b"Bootstrap: localimage\n"
    parts = [Part(0x4001, definition), Part(0x4006, b'{"schema": "ctk/1"}', name="ctk.json"), system(squashed)]
    image = write_sif(tmp_path / "image.sif", parts)
    sif = read_sif(image)
    assert sif.architecture == "amd64"
    assert sif.definition() == "Bootstrap: localimage\n"
    assert sif.json_object("ctk.json") == {"schema": "ctk/1"}
    assert sif.json_object("other.json") is None
    partition = sif.of_type(DataType.PARTITION)[0].partition
    assert partition is not None
    assert partition.type is PartitionType.PRIMARY_SYSTEM
    with open_image(image) as rootfs:
        assert rootfs.form == "flat SIF"
        check(rootfs)


def layer(tmp_path: Path, name: str, files: dict[str, str | bytes], *pseudo: str, opaque: str = "") -> bytes:
    options = [word for line in pseudo for word in ("-p", line)]
    directory = fill(tmp_path / name, files)
    if opaque:
        os.setxattr(directory / opaque, "user.something", b"y" * 200)
        os.setxattr(directory / opaque, "user.overlay.opaque", b"y")
    return squash(directory, tmp_path / f"{name}.squashfs", *options).read_bytes()


@pytest.mark.programs
def test_layers_hide_replace_and_merge(tmp_path: Path) -> None:
    base = layer(tmp_path, "base", {
        "a/kept": "base", "a/gone": "base", "a/changed": "base", "opaque/old": "base", "docker/old": "base",
        "file-to-directory": "base", "directory-to-file/x": "base", "whiteout-file": "base", "usr/x": "base",
    })  # fmt: skip
    first = layer(
        tmp_path, "first",
        {"a/changed": "first", "opaque/new": "first", "docker/new": "first", "docker/.wh..wh..opq": "",
         "file-to-directory/x": "first", "directory-to-file": "first", ".wh.whiteout-file": "", "a/later": "first"},
        "a/gone c 644 0 0 0 0", opaque="opaque",
    )  # fmt: skip
    second = layer(tmp_path, "second", {"a/changed": "second"}, "a/later c 644 0 0 0 0", "dev-null c 644 0 0 1 3")
    image = write_sif(tmp_path / "layered.sif", [system(base), overlay(first), overlay(second)])
    with open_image(image) as rootfs:
        assert rootfs.form == "layered SIF"
        assert rootfs.names("/") == (
            "a",
            "dev-null",
            "directory-to-file",
            "docker",
            "file-to-directory",
            "opaque",
            "usr",
        )
        assert rootfs.names("/a") == ("changed", "kept")
        assert rootfs.read("/a/changed") == b"second"
        assert rootfs.read("/a/kept") == b"base"
        assert rootfs.names("/opaque") == ("new",)
        assert rootfs.names("/docker") == ("new",)
        assert rootfs.names("/file-to-directory") == ("x",)
        assert rootfs.read("/directory-to-file") == b"first"
        assert rootfs.kind("/dev-null") is EntryKind.OTHER
        assert rootfs.disputed == {"/opaque", "/docker/old", "/whiteout-file"}


@pytest.mark.programs
def test_a_data_partition_is_no_layer(tmp_path: Path) -> None:
    base = layer(tmp_path, "base", {"usr/x": "base"})
    data = Part(0x4004, layer(tmp_path, "data", {"usr/x": "data"}), partition_type=3)
    with open_image(write_sif(tmp_path / "image.sif", [system(base), data])) as rootfs:
        assert rootfs.read("/usr/x") == b"base"
        assert rootfs.form == "flat SIF"


WRONG = {
    "empty": (b"", "is empty"),
    "text": (b"hello", "neither SIF nor squashfs"),
    "definition": (b"Bootstrap: docker\nFrom: debian\n", "a definition file"),
    "gzip": (b"\x1f\x8b\x08" + bytes(60), "compressed with gzip"),
    "page": (b"<!DOCTYPE html><html>", "a web page"),
    "short-header": (b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0") + b"SIF_MAGIC\0", "its header is truncated"),
    "short-squashfs": (b"hsqs" + bytes(20), "refers to bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_open_image_names_type_of_other_files(tmp_path: Path, name: str) -> None:
    content, words = WRONG[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WrongInput, match=words):
        open_image(tmp_path / name)


def test_open_image_refuses_missing_path_and_directory(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="there is no image"):
        open_image(tmp_path / "nothing.sif")
    with pytest.raises(WrongInput, match="not a sandbox"):
        open_image(tmp_path)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (system(b"?" * 4096, file_system=5), "encrypted"),
        (system(b"?" * 4096, file_system=6), "encrypted"),
        (system(b"?" * 4096, file_system=2), "ext3"),
        (system(b"?" * 4096), "magic number is missing"),
        (Part(0x400A, b"{}"), "OCI-SIF"),
        (Part(0x4001, b"Bootstrap: x"), "no system partition"),
    ],
)
def test_unreadable_sif_error_has_reason(tmp_path: Path, part: Part, words: str) -> None:
    with pytest.raises(WrongInput, match=words):
        open_image(write_sif(tmp_path / "image.sif", [part]))


@pytest.mark.programs
def test_truncated_sif_is_refused(directory: Path, tmp_path: Path) -> None:
    squashed = squash(directory, tmp_path / "image.squashfs").read_bytes()
    image = write_sif(tmp_path / "image.sif", [system(squashed)])
    image.write_bytes(image.read_bytes()[:-5000])
    with pytest.raises(WrongInput, match="but the file has") as caught:
        open_image(image)
    assert caught.value.fix is not None
    assert "interrupted" in caught.value.fix


@pytest.mark.programs
def test_nothing_is_written_or_kept_open(directory: Path, tmp_path: Path) -> None:
    from pathlib import Path as PlainPath

    image = squash(directory, tmp_path / "image.squashfs")
    before = hashlib.sha256(image.read_bytes()).digest()
    with open_image(image) as rootfs:
        rootfs.read("/etc/hello")
    held = [link.resolve() for link in PlainPath("/proc/self/fd").iterdir() if link.exists()]
    assert image not in held
    assert hashlib.sha256(image.read_bytes()).digest() == before
