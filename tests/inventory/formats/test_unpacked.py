"""What an image takes on a disk, against what unsquashfs writes there."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, overlay, squash, system, write_sif
from toolkit.inventory.formats.unpacked import directory_size, unpacked_size
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.programs
MIB = 1 << 20


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Zeros that were written, holes, a file with two names, and many small files."""
    files: dict[str, str | bytes] = {f"small/{number}": b"%d" % number for number in range(300)}
    files |= {"noise": os.urandom(3 * MIB + 1), "zeros": bytes(20 * MIB), "link": "-> noise"}
    directory = fill(tmp_path_factory.mktemp("root"), files)
    (directory / "second").hardlink_to(directory / "noise")
    with (directory / "hole").open("wb") as file:
        file.write(b"begin")
        file.truncate(40 * MIB)
    return directory


@pytest.mark.parametrize("options", [(), ("-no-sparse",), ("-b", "4096"), ("-b", "1M", "-no-fragments")])
def test_size_is_what_unsquashfs_writes(root: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    image = squash(root, tmp_path / "image", *options)
    subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-dest", "out", "image"], cwd=tmp_path, check=True)
    du = subprocess.run(["du", "--summarize", "--block-size=1", "out"], cwd=tmp_path, capture_output=True, check=True)
    written = int(du.stdout.split()[0])
    assert image.stat().st_size < 4 * MIB
    assert written <= unpacked_size(image) <= written + MIB
    assert directory_size(tmp_path / "out") == pytest.approx(written, abs=8192)


def test_all_partitions_of_a_sif_count(root: Path, tmp_path: Path) -> None:
    squashed = squash(root, tmp_path / "squashed")
    content = squashed.read_bytes()
    flat = write_sif(tmp_path / "flat.sif", [system(content)])
    assert unpacked_size(flat) == unpacked_size(squashed) > 20 * MIB
    layered = write_sif(tmp_path / "layered.sif", [system(content), overlay(content)])
    assert unpacked_size(layered) == 2 * unpacked_size(flat)


def test_an_image_that_lies_is_refused(root: Path, tmp_path: Path) -> None:
    content = bytearray(squash(root, tmp_path / "image").read_bytes())
    for place in (4, 64, 72):  # the number of inodes, their table, that of directories
        damaged = tmp_path / f"damaged{place}"
        damaged.write_bytes(content[:place] + b"\xff\xff\xff\x7f" + content[place + 4 :])
        with pytest.raises(WrongInput):
            unpacked_size(damaged)
