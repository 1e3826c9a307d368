"""Images that are damaged or made to hurt: one clear error, soon, in little memory. `make soak` does many more."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inventory.making import fill, squash, system, write_sif
from tests.soak.images import run
from toolkit.gpu.audit import audit_image
from toolkit.gpu.facts import TargetMachine
from toolkit.gpu.loader import parse_cache
from toolkit.inventory.formats.compression import DECOMPRESSORS
from toolkit.inventory.formats.elf import Dynamic, read_architectures, read_dynamic, read_only_data
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.literals import assignments
from toolkit.inventory.formats.sif import read_sif
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.inventory.formats.tree import EntryKind
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.programs
def test_hostile_images_sample_of_soak() -> None:
    report = run(seed=20_261_121, count=400)
    assert report.failures == []
    assert report.count == 400
    assert report.verdicts
    assert report.errors["error corrupt-image"] > 100


@given(st.binary(max_size=2000), st.sampled_from(sorted(DECOMPRESSORS)))
def test_decompressors_respect_limit_or_raise_value_error(data: bytes, number: int) -> None:
    with contextlib.suppress(ValueError):
        assert len(DECOMPRESSORS[number](data, 8192)) <= 8192


def test_block_larger_than_limit_is_refused() -> None:
    assert len(DECOMPRESSORS[1](zlib.compress(bytes(50_000_000)), 8192)) == 8192
    with pytest.raises(ValueError, match="insufficient space"):
        DECOMPRESSORS[5](b"\x1f\x00\x01\x00" + b"\xff" * 50_000 + b"\x00", 8192)


def test_lz4_block_takes_no_size_from_its_first_bytes() -> None:
    """They are where the library's own format keeps the size, 2 GiB here: they are a token and literals."""
    tracemalloc.start()
    with pytest.raises(ValueError, match="corrupt input"):
        DECOMPRESSORS[5](b"\xff\xff\xff\x7f" + bytes(20), 8192)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def claimed(image: Path, at: int, kind: str, value: int) -> Path:
    content = bytearray(image.read_bytes())
    struct.pack_into(kind, content, at, value)
    image.write_bytes(content)
    return image


@pytest.mark.parametrize("value", [(1 << 63) - 1, -1, 1 << 40, 1 << 20])
@pytest.mark.parametrize("at", [88, 96], ids=["descriptors", "offset"])
def test_sif_with_implausible_tables_is_refused(tmp_path: Path, at: int, value: int) -> None:
    image = claimed(write_sif(tmp_path / "x.sif", [system(b"hsqs" * 2000)]), at, "<q", value)
    with pytest.raises(WrongInput, match="damaged"):
        read_sif(image)


@pytest.mark.parametrize("value", [(1 << 63) - 1, -1, 1 << 40])
@pytest.mark.parametrize("at", [128 + 17, 128 + 25], ids=["offset", "size"])
def test_sif_with_partition_outside_file_is_refused(tmp_path: Path, at: int, value: int) -> None:
    image = claimed(write_sif(tmp_path / "x.sif", [system(b"hsqs" * 2000)]), at, "<q", value)
    with pytest.raises(WrongInput, match="damaged"):
        open_image(image)


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
    """A directory whose inode points at its parent's listing: a path through it is as long as it is written."""
    root = fill(tmp_path / "root", {"usr/a/b/c": b"x"})
    image = squash(root, tmp_path / "x.squashfs", "-noI", "-noD", "-noF")
    parent, directory = inode_at(image), inode_at(image, "usr")
    content = bytearray(image.read_bytes())
    content[directory + 16 : directory + 32] = content[parent + 16 : parent + 32]
    image.write_bytes(content)
    with open_image(image) as rootfs:
        assert rootfs.names("/usr/usr/usr") == ("usr",)
        assert rootfs.kind("/" + "usr/" * 200) is EntryKind.DIRECTORY
        assert audit_image(image, TargetMachine()).verdict is Verdict.NO_FRAMEWORK


@given(st.binary(max_size=4000))
def test_parsers_of_binaries_take_anything(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    parse_cache(b"glibc-ld.so.cache1.1" + data)
    directory = tmp_path_factory.mktemp("elf")
    (directory / "usr").mkdir()
    (directory / "x").write_bytes(b"\x7fELF\x02\x01" + data)
    with open_image(directory) as rootfs:
        read_dynamic(rootfs, "/x")
        read_only_data(rootfs, "/x")
        read_architectures(rootfs, "/x")


def library(directory: Path, *entries: tuple[int, int]) -> Path:
    """A sandbox with the library /x: one PT_LOAD at address 0, and a dynamic section of `entries`."""
    size = 16 * len(entries)
    head = b"\x7fELF\x02\x01" + bytes(26) + struct.pack("<QQIHHHHHH", 64, 0, 0, 64, 56, 2, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 4096, 4096, 4096)
    dynamic = struct.pack("<IIQQQQQQ", 2, 6, 176, 176, 176, size, size, 8)
    (directory / "usr").mkdir()
    (directory / "x").write_bytes(head + load + dynamic + b"".join(struct.pack("<QQ", *entry) for entry in entries))
    return directory


def test_library_without_string_table_is_unreadable(tmp_path: Path) -> None:
    """The dynamic section has DT_NEEDED and no DT_STRTAB; the audit then knows nothing of it."""
    with open_image(library(tmp_path, (1, 0))) as rootfs:
        assert read_dynamic(rootfs, "/x") is None


def test_library_with_name_outside_file_is_unreadable(tmp_path: Path) -> None:
    """DT_NEEDED far behind DT_STRTAB: the kernel refuses to seek there (EINVAL), or there is nothing to read."""
    with open_image(library(tmp_path, (5, 176), (10, 16), (1, 1 << 61))) as rootfs:
        assert read_dynamic(rootfs, "/x") in (None, Dynamic(needed=("",)))


@given(st.text())
def test_literals_of_invalid_python_do_not_raise(text: str) -> None:
    assert isinstance(assignments(text), dict)


def test_literals_of_deeply_nested_python() -> None:
    assert assignments("x = " + "(" * 100_000) == {}
    assert assignments("x = " + "-" * 100_000 + "1") == {}
