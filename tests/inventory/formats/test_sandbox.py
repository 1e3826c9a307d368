"""A sandbox directory as an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.inventory.one_image import check
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sandbox(directory: Path) -> None:
    with open_image(directory) as rootfs:
        assert rootfs.form == "sandbox"
        check(rootfs)
