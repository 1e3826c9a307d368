"""The system of an image: its C library and packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.inventory.contents.test_interpreters import inventory

if TYPE_CHECKING:
    from pathlib import Path


def test_the_glibc_before_2_34_is_told_by_its_link(tmp_path: Path) -> None:
    files = {"lib/x86_64-linux-gnu/libc.so.6": "-> libc-2.31.so", "lib/x86_64-linux-gnu/libc-2.31.so": b"\x7fELF"}
    assert inventory(tmp_path, files).glibc == "2.31"
