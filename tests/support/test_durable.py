"""What is on the disk before a name is, and what a broken disk says; tests/real/test_power.py cuts the power."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.support import durable
from toolkit.support.durable import exchange, start_writing, sync, sync_directory, syncing, write_out
from toolkit.support.errors import CtkError, MissingOnHost
from toolkit.support.files import write_atomically
from toolkit.support.staging import put_in_place

if TYPE_CHECKING:
    from collections.abc import Callable

    Steps = list[tuple[str, str]]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """What is synced and renamed, with the name that it has then."""
    done: Steps = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        done.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))

    def renamed(path: Path, target: Path) -> Path:
        done.append(("rename", target.name))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    return done


def break_disk(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)


def test_a_file_is_on_the_disk_before_its_name_and_the_name_after(tmp_path: Path, steps: Steps) -> None:
    write_atomically(tmp_path / "f", "text")
    assert [what for what, _ in steps] == ["sync", "rename", "sync"]
    assert steps[0][1].startswith(".f.")
    assert steps[1:] == [("rename", "f"), ("sync", tmp_path.name)]


def test_a_cache_is_not_synced(tmp_path: Path, steps: Steps) -> None:
    write_atomically(tmp_path / "f", "text", durable=False)
    assert steps == [("rename", "f")]


def test_an_image_is_on_the_disk_before_its_name_and_the_name_after(tmp_path: Path, steps: Steps) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/image").write_text("new")
    put_in_place(tmp_path / "work/image", tmp_path / "final.sif")
    assert steps[:3] == [("sync", "image"), ("rename", "final.sif"), ("sync", tmp_path.name)]


@pytest.mark.parametrize(
    ("number", "code"), [(errno.EIO, "system-error"), (errno.ENOSPC, "disk-full"), (errno.EDQUOT, "disk-full")]
)
def test_a_disk_that_fails_at_the_end_leaves_the_old_file(
    number: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("f", "image"):
        (tmp_path / name).write_text("old")
    (tmp_path / "new").write_text("new")
    break_disk(monkeypatch, number)
    with pytest.raises(MissingOnHost, match=f"cannot write {tmp_path}/f: {os.strerror(number)}") as caught:
        write_atomically(tmp_path / "f", "new")
    assert caught.value.code == code
    with pytest.raises(OSError, match=f"{tmp_path}/new") as failed:
        put_in_place(tmp_path / "new", tmp_path / "image")
    assert failed.value.errno == number
    assert {(tmp_path / name).read_text() for name in ("f", "image")} == {"old"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "image", "new"]


def test_a_file_system_that_cannot_sync_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_disk(monkeypatch, errno.EINVAL)
    write_atomically(tmp_path / "f", "text")
    assert (tmp_path / "f").read_text() == "text"


def test_a_file_is_synced_while_other_work_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_text("text")
    with syncing(tmp_path / "f"):
        pass
    break_disk(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="/f"), syncing(tmp_path / "f"):
        pass
    with pytest.raises(CtkError, match="damaged"), syncing(tmp_path / "f"):
        raise CtkError("damaged")


def test_a_directory_is_synced_with_all_that_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync(tmp_path)
    sync_directory(tmp_path)
    call, called = durable._call, []

    def calling(name: str, *arguments: int | bytes) -> int:
        called.append(name)
        return call(name, *arguments) or errno.EIO

    monkeypatch.setattr(durable, "_call", calling)
    with pytest.raises(OSError, match=str(tmp_path)):
        sync(tmp_path)
    assert called == ["syncfs"]


def test_content_is_written_out_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    call: Callable[..., int] = durable._call
    monkeypatch.setattr(durable, "_call", lambda *words: results.append(call(*words)) or results[-1])
    with (tmp_path / "f").open("w+b") as file:
        file.write(b"x" * 10_000)
        start_writing(file.fileno(), 0, 10_000)
        write_out(file.fileno())
    assert results == [0, 0]
    with pytest.raises(OSError, match="Illegal seek"), Path("/dev/null").open() as device:
        write_out(device.fileno())


def test_two_names_are_exchanged(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one/other").exists()
    assert (tmp_path / "other/one").exists()
    assert not exchange(tmp_path / "one", tmp_path / "missing")
