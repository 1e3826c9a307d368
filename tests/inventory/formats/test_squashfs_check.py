"""What was packed is read back: a whole image passes, damage is named, and nothing else is ever raised."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.inventory.making import fill, squash, system, write_sif
from toolkit.inventory.formats.squashfs_check import read_back
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.programs
ALL = ("gzip", "zstd", "xz", "lz4", "lzo", "lzma")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of all layouts: empty, small, of several blocks, with a hole, twice the same, a long directory, a link."""
    text = b"".join(b"line %d of a file that can be compressed\n" % number for number in range(12_000))
    files: dict[str, str | bytes] = {f"many/{'n' * 200}{number}": b"%d" % number for number in range(400)}
    files |= {"empty": b"", "small": b"x", "text": text, "same": text, "noise": os.urandom(300_000), "link": "-> small"}
    directory = fill(tmp_path_factory.mktemp("root"), files)
    with (directory / "hole").open("wb") as file:
        file.truncate(1 << 20)
    os.mkfifo(directory / "pipe")
    (directory / "hard").hardlink_to(directory / "text")
    return directory


@pytest.fixture(scope="module")
def images(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    there = tmp_path_factory.mktemp("images")
    return {name: squash(root, there / name, "-comp", name, "-no-xattrs") for name in ALL}


@pytest.mark.parametrize("compression", ALL)
def test_read_back_accepts_what_mksquashfs_makes(images: dict[str, Path], compression: str) -> None:
    steps: list[tuple[int, int]] = []
    read_back(images[compression], on_progress=lambda done, total: steps.append((done, total)))
    assert steps
    assert steps[-1][0] == steps[-1][1] > 0
    assert steps == sorted(steps)


@pytest.mark.parametrize(
    "options",
    [
        ("-no-fragments",), ("-always-use-fragments",), ("-b", "4096"), ("-b", "1M"), ("-noI", "-noD", "-noF"),
        ("-no-exports",), ("-xattrs",), ("-no-duplicates",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_read_back_accepts_every_layout(root: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    read_back(squash(root, tmp_path / "x.sqfs", "-comp", "zstd", *options), cores=1)


def test_read_back_accepts_attributes_and_an_empty_image(tmp_path: Path) -> None:
    directory = fill(tmp_path / "root", {"a": b"1", "b/": ""})
    os.setxattr(directory / "a", "user.name", b"v" * 50)
    os.setxattr(directory / "b", "user.other", b"w" * 90)
    read_back(squash(directory, tmp_path / "x.sqfs", "-xattrs"))
    read_back(squash(fill(tmp_path / "none", {"d/": ""}), tmp_path / "y.sqfs"))


def test_read_back_reads_every_partition_of_a_sif(images: dict[str, Path], tmp_path: Path) -> None:
    content = images["gzip"].read_bytes()
    image = write_sif(tmp_path / "x.sif", [system(content)])
    read_back(image)
    data = bytearray(image.read_bytes())
    data[data.index(content) + 5000] ^= 1
    image.write_bytes(data)
    with pytest.raises(WrongInput, match="is damaged") as refused:
        read_back(image)
    assert refused.value.code == "corrupt-image"


@pytest.mark.parametrize("compression", ["gzip", "xz"])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@examples(60, deadline=None)
def test_a_flipped_bit_in_a_checked_block_is_always_found(
    images: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, compression: str, place: float, bit: int
) -> None:
    """The first blocks of the text: compressed, with a checksum."""
    original = images[compression]
    damaged = tmp_path_factory.mktemp("flip") / "x.sqfs"
    data = bytearray(original.read_bytes())
    start, end = _text_blocks(original)
    data[start + int(place * (end - start))] ^= 1 << bit
    damaged.write_bytes(data)
    with pytest.raises(WrongInput):
        read_back(damaged, cores=1)
    shutil.rmtree(damaged.parent)


@pytest.mark.parametrize("compression", ["gzip", "zstd", "xz", "lz4"])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@examples(60, deadline=None)
def test_any_flipped_bit_passes_or_is_wrong_input(
    images: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, compression: str, place: float, bit: int
) -> None:
    data = bytearray(images[compression].read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    damaged = tmp_path_factory.mktemp("flip") / "x.sqfs"
    damaged.write_bytes(data)
    with contextlib.suppress(WrongInput):
        read_back(damaged, cores=1)
    shutil.rmtree(damaged.parent)


@pytest.mark.parametrize("cut", [10, 96, 5000, 0.5, 0.9])
def test_a_truncated_image_is_found(images: dict[str, Path], tmp_path: Path, cut: float) -> None:
    data = images["zstd"].read_bytes()
    damaged = tmp_path / "x.sqfs"
    damaged.write_bytes(data[: int(cut if cut >= 1 else cut * len(data))])
    with pytest.raises(WrongInput):
        read_back(damaged)


def _text_blocks(image: Path) -> tuple[int, int]:
    """Where the blocks of /text are in an image."""
    from itertools import accumulate

    from toolkit.inventory.formats.squashfs import Squashfs

    tree = Squashfs(image)
    file = tree._file_inode(tree.children(tree.root)["text"])
    tree.close()
    ends = list(accumulate((size & ~(1 << 24) for size in file.blocks), initial=file.start))
    return ends[0], ends[-1]
