"""The audit's model of the dynamic loader, held against the real one; and the cases that users met."""

from __future__ import annotations

import os
import platform
import re
import struct
import subprocess
from pathlib import Path

import pytest

from tests.gpu import layouts
from toolkit.gpu.loader import parse_cache

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
