"""A process that loads libraries, without running it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, python_files
from tests.real.wheels import elf
from toolkit.gpu.loader import Loader
from toolkit.gpu.process import Process
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path


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
