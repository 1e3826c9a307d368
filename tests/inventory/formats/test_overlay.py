"""Layers over one another: what hides, replaces and merges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import overlay, system, write_sif
from tests.inventory.one_image import layer
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from pathlib import Path


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
