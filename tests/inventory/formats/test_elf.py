"""ELF files: what they need, and the GPU code in them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inventory.making import fill
from tests.real.wheels import elf
from toolkit.gpu.loader import parse_cache
from toolkit.inventory.formats.elf import Dynamic, read_architectures, read_dynamic, read_only_data
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path


def test_the_gpu_architectures_of_a_library_are_those_of_its_code(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "lib/liba.so": elf([], "", False, "", compiled="sm_61 sm_86 compute_90"),
            "lib/libb.so": elf([], "", False, ""),
        },
    )
    with open_image(tmp_path) as rootfs:
        assert read_architectures(rootfs, "/lib/liba.so") == ("sm_61", "sm_86", "compute_90")
        assert read_architectures(rootfs, "/lib/libb.so") == ()
        assert read_architectures(rootfs, "/lib/none.so") == ()


@pytest.mark.parametrize("damage", [(0, b"\0"), (20, b"\0\0\0\0"), (24, b"\xff" * 8), (8, b"\xff" * 8)])
def test_a_damaged_fat_binary_has_no_architectures_or_few(tmp_path: Path, damage: tuple[int, bytes]) -> None:
    at, content = damage
    whole = bytearray(elf([], "", False, "", compiled="sm_61 sm_86"))
    start = whole.index(struct.pack("<I", 0xBA55ED50)) + at
    whole[start : start + len(content)] = content
    fill(tmp_path, {"lib/liba.so": bytes(whole)})
    with open_image(tmp_path) as rootfs:
        assert set(read_architectures(rootfs, "/lib/liba.so")) <= {"sm_61", "sm_86"}


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
