"""A sandbox directory as an image."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, squash, system, write_sif
from tests.inventory.one_image import check
from toolkit.inventory.formats.images import open_image, open_partitions, open_step
from toolkit.inventory.formats.sif import read_sif
from toolkit.inventory.formats.squashfs import Squashfs

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sandbox(directory: Path) -> None:
    with open_image(directory) as rootfs:
        assert rootfs.form == "sandbox"
        check(rootfs)


@pytest.mark.programs
def test_upper_directory_hides_what_its_mount_hid(tmp_path: Path) -> None:
    upper = tmp_path / "upper"
    (upper / "usr" / "replaced").mkdir(parents=True)
    os.setxattr(upper / "usr" / "replaced", "user.fuseoverlayfs.opaque", b"y")
    os.mknod(upper / "usr" / "gone", stat.S_IFCHR, os.makedev(0, 0))
    (upper / "usr" / "new").write_text("new")
    files = {"usr/gone": "old", "usr/replaced/old": "old", "usr/kept": "old", "usr/between": "old"}
    base = squash(fill(tmp_path / "base", files), tmp_path / "base.squashfs").read_bytes()
    image = write_sif(tmp_path / "base.sif", [system(base)])
    between = squash(fill(tmp_path / "between", {"usr/between": "changed"}), tmp_path / "between.squashfs")
    with open_step(upper, [Squashfs(between), *open_partitions(read_sif(image))]) as seen:
        assert seen.names("/usr") == ("between", "kept", "new", "replaced")
        assert seen.names("/usr/replaced") == ()
        assert seen.read("/usr/between") == b"changed"
