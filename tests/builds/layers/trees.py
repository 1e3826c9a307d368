"""Small trees below a layer, for the tests of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.inventory.making import fill, squash
from toolkit.builds.layers.below import Lower
from toolkit.inventory.formats.squashfs import Squashfs

if TYPE_CHECKING:
    from pathlib import Path


def lower(directory: Path, *layers: dict[str, str | bytes], pseudo: str = "") -> Lower:
    """Layers from tables of files, the lowest first; `pseudo` is mksquashfs's, for what only root makes in the last."""
    trees = []
    for number, files in enumerate(layers):
        content = fill(directory / str(number), {"etc/": "", **files})
        options = ["-p", pseudo] if pseudo and number == len(layers) - 1 else []
        trees.insert(0, Squashfs(squash(content, directory / f"{number}.sqfs", "-all-root", *options)))
    return Lower(trees)
