"""The audit's model of the dynamic loader, held against the real one; and the cases that users met."""

from __future__ import annotations

import os
import platform
import re
import struct
import subprocess
import time
from pathlib import Path

import pytest

from tests.gpu import layouts
from tests.inventory.making import fill, python_files
from tests.real.wheels import elf
from toolkit.gpu.loader import Loader, parse_cache
from toolkit.gpu.process import Process
from toolkit.inventory.formats.elf import read_architectures
from toolkit.inventory.formats.images import open_image

_LAYOUTS = int(os.environ.get("CTK_LOADER_LAYOUTS", "20"))


@pytest.mark.programs
@pytest.mark.timeout(3600)
def test_random_layouts_load_as_the_real_loader_loads_them(tmp_path: Path) -> None:
    parts = layouts.prepare(tmp_path / "parts")
    loaded = refused = 0
    for number in range(_LAYOUTS):
        layout = layouts.make(tmp_path / str(number), f"1.{number}", parts)
        real = layout.in_reality()
        assert layout.by_the_model() == real, f"seed 1.{number}: {layout}"
        loaded += sum(done for done, _ in real)
        refused += sum(not done for done, _ in real)
    assert min(loaded, refused) > _LAYOUTS // 4, "the layouts are of both sorts"


@pytest.mark.parametrize(("opened", "found"), [("/x/liba.so", True), ("/x/libopener.so", False)])
def test_the_rpath_of_a_library_that_calls_dlopen_ends_there(tmp_path: Path, opened: str, found: bool) -> None:
    """It serves the libraries that are linked with it and theirs; of one that it opens by name, that one only."""
    files = {
        "x/liba.so": elf(["libb.so"], "/b:/c", False, "", "liba.so"),
        "x/libopener.so": elf([], "/b:/c", False, "", "libopener.so"),
        "b/libb.so": elf(["libc.so"], "", False, "", "libb.so"),
        "c/libc.so": elf([], "", False, "", "libc.so"),
    }
    fill(tmp_path, {**python_files(), **files})
    with open_image(tmp_path) as rootfs:
        process = Process(Loader(rootfs))
        needs = process.open(opened)
        if opened == "/x/libopener.so":
            needs = process.open("libb.so", process.loaded(opened))
    assert {need.name: need.path for need in needs if need.name != opened} == {
        "libb.so": "/b/libb.so",
        "libc.so": "/c/libc.so" if found else None,
    }


def test_the_cache_of_this_machine_is_read_as_ldconfig_prints_it() -> None:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    machine = {"x86_64": ("x86-64", 0x0303), "aarch64": ("AArch64", 0x0A03)}[platform.machine()]
    expected: dict[str, str] = {}
    for name, kind, path in re.findall(r"^\t(\S+) \(([^)]*)\) => (\S+)$", listed, re.MULTILINE):
        if machine[0] in kind:
            expected.setdefault(name, path)
    assert len(expected) > 5
    assert parse_cache(Path("/etc/ld.so.cache").read_bytes(), machine[1]) == expected


def test_a_cache_of_two_machines_gives_the_libraries_of_one() -> None:
    """As of libc6-i386 beside libc6: both have a libz.so.1."""
    texts = b"libz.so.1\0/lib32/libz.so.1\0/lib64/libz.so.1\0"
    start = 48 + 2 * 24
    entries = struct.pack("<iIIIQ", 0x0003, start, start + 10, 0, 0) + struct.pack(
        "<iIIIQ", 0x0303, start, start + 27, 0, 0
    )
    cache = b"glibc-ld.so.cache1.1" + struct.pack("<II", 2, len(texts)).ljust(28, b"\0") + entries + texts
    assert parse_cache(cache) == {"libz.so.1": "/lib32/libz.so.1"}
    assert parse_cache(cache, 0x0303) == {"libz.so.1": "/lib64/libz.so.1"}


@pytest.mark.parametrize("run_path", [True, False])
def test_a_hostile_library_does_not_keep_the_audit_busy(tmp_path: Path, run_path: bool) -> None:
    """Thousands of needs and directories, none of which are there."""
    needed = [f"lib{number}.so" for number in range(4000)]
    search = ":".join(f"/d{number}" for number in range(1500))
    fill(tmp_path, {**python_files(), "liba.so": elf(needed, search, run_path, "")})
    with open_image(tmp_path) as rootfs:
        started = time.process_time()
        needs = Process(Loader(rootfs)).open("/liba.so")
    assert len(needs) == 4001
    assert time.process_time() - started < 5


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
