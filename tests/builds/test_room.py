"""Which disk became full while a build ran: named with its numbers and its own advice, or none blamed."""

from __future__ import annotations

import errno
import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import request
from toolkit.builds import room as room_module
from toolkit.builds.room import NOTHING, UNKNOWN, Disk, Room, RoomWatch, cause, check_exec, check_room
from toolkit.runtime.known_errors import FULL_DISK
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.paths import WorkArea

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


GIB = 1 << 30


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RoomWatch]:
    """A watch of directories on file systems of their own, each with the free bytes that its list says, in turn."""

    def make(**free: list[int]) -> RoomWatch:
        disks = [Disk(tmp_path / name, name, f"Move {name}.") for name in free]
        for disk in disks:
            disk.path.mkdir()
        left = {tmp_path / name: list(numbers) for name, numbers in free.items()}
        monkeypatch.setattr(
            room_module, "free_space", lambda path: left[path].pop(0) if len(left[path]) > 1 else left[path][0]
        )
        monkeypatch.setattr(room_module, "file_system_of", lambda path: path.name)
        return RoomWatch(disks)

    return make


def sampled(watch: RoomWatch) -> RoomWatch:
    with watch.watching():
        time.sleep(0.2)
    return watch


def test_a_disk_that_was_full_for_a_moment_is_named(watch: Callable[..., RoomWatch]) -> None:
    seen = sampled(watch(scratch=[2 * GIB], output=[2 * GIB, 0, 2 * GIB]))
    for lines in (["FATAL: No space left on device"], ["head: standard output: I/O error"]):
        found = cause(lines, seen)
        assert found is not None
        assert "no space left for output in " in found.meaning
        assert "(0 B free, more than 2.0 GiB needed)" in found.meaning
        assert found.fix == "Move output."
        assert found.pattern == FULL_DISK.pattern


def test_no_disk_is_blamed_for_another_failure(watch: Callable[..., RoomWatch]) -> None:
    seen = sampled(watch(scratch=[2 * GIB, GIB], small=[1000]))
    assert cause(["sh: none: not found"], seen) is None
    network = cause(["dial tcp: no such host"], seen)
    assert network is not None
    assert "could not be reached" in network.meaning


def test_a_quota_names_all_that_it_may_be_of(watch: Callable[..., RoomWatch]) -> None:
    found = cause(["write /x: Disk quota exceeded"], watch(scratch=[2 * GIB], output=[3 * GIB]))
    assert found is not None
    assert "scratch (2.0 GiB free)" in found.meaning
    assert "output (3.0 GiB free)" in found.meaning
    assert found.fix == "`quota -s` may show which. Move scratch. Move output."


def test_an_error_of_ctk_s_own_writing_names_the_disk(watch: Callable[..., RoomWatch]) -> None:
    room = watch(scratch=[2 * GIB], output=[2 * GIB, 0])
    with pytest.raises(ProgramFailed, match="no space left for output") as caught, room.watching():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (caught.value.code, caught.value.fix) == ("disk-full", "Move output.")
    with pytest.raises(IsADirectoryError), room.watching():
        raise IsADirectoryError(errno.EISDIR, "Is a directory")


@pytest.mark.parametrize(
    ("place", "purpose", "fix"),
    [
        (
            "area/tmp",
            "the build",
            "Set CTK_HOME to a directory with more free space, for example on scratch. If `ctk cache list` shows",
        ),
        ("empty", "the build", "Unset TMPDIR, or set it to a directory with more free space"),
        (".", "the image", "Write the image elsewhere"),
    ],
)
def test_room_too_small_before_build(
    here: Path, monkeypatch: pytest.MonkeyPatch, place: str, purpose: str, fix: str
) -> None:
    made, area = request("mine"), WorkArea(here / "area", "the test")
    monkeypatch.setenv("TMPDIR", str(here / "empty") if place == "empty" else "")
    monkeypatch.setattr(room_module, "free_space", lambda path: 1000 if path == here / place else 1 << 40)
    with pytest.raises(MissingOnHost, match=f"for {purpose} in .*: 1000 B free, 1.0 GiB needed") as caught:
        check_room(UNKNOWN, made.output, area)
    assert caught.value.code == "disk-full"
    assert fix in str(caught.value.fix)
    with pytest.raises(MissingOnHost, match=r"1000 B free, 65\.0 MiB needed"):
        check_room(Room(1 << 20, 1 << 20), made.output, area)
    with pytest.raises(MissingOnHost, match=r"1000 B free, 64\.0 MiB needed"):
        check_room(NOTHING, made.output, area)
    monkeypatch.setattr(room_module, "free_space", lambda _path: 1 << 30)
    check_room(UNKNOWN, made.output, area)
    monkeypatch.setattr(room_module, "free_space", lambda _path: 65 << 20)
    check_room(NOTHING, None, area)
    check_room(Room(1 << 20, 1 << 20), None, area)
    with pytest.raises(MissingOnHost, match=r"65\.0 MiB free, 66\.0 MiB needed"):
        check_room(Room(2 << 20, 0), None, area)


@pytest.mark.parametrize(
    ("variable", "code", "fix"),
    [(None, "work-area-noexec", "or only APPTAINER_TMPDIR"), ("TMPDIR", "scratch-noexec", "Unset TMPDIR, or")],
)
def test_a_disk_where_nothing_can_be_executed(
    here: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, code: str, fix: str
) -> None:
    for name in ("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    area = WorkArea(here / "area", "the test")
    scratch = here / "scratch" if variable else area.path / "tmp"
    if variable:
        monkeypatch.setenv(variable, str(scratch))
    check_exec(area)
    there = SimpleNamespace(f_flag=os.ST_NOEXEC | os.ST_NOSUID)
    monkeypatch.setattr(os, "statvfs", lambda _path: there)
    with pytest.raises(MissingOnHost) as caught:
        check_exec(area)
    assert str(caught.value) == f"builds run programs in {scratch}, and its file system is mounted with noexec"
    assert caught.value.code == code
    assert fix in str(caught.value.fix)


def test_a_tmpdir_that_is_not_there_is_named(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/none")
    with pytest.raises(MissingOnHost, match="TMPDIR is set to /none, which does not exist"):
        check_room(UNKNOWN, request("mine").output, WorkArea(here / "area", "the test"))
