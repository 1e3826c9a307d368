"""The readers: every form and compression gives the same files, and what is no image gets one clear message."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import squash
from toolkit.inventory.formats.images import open_image
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


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
