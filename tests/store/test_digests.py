"""A large file is read once, and again after every change."""

from __future__ import annotations

import errno
import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from toolkit.store import digests
from toolkit.store.digests import Digests

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number for each file that is read."""
    reads: list[int] = []
    real = digests.compute

    def compute(descriptor: int) -> str:
        reads.append(descriptor)
        return real(descriptor)

    monkeypatch.setattr(digests, "compute", compute)
    monkeypatch.setattr(digests, "_SETTLED_NS", 0)
    return reads


def of(text: bytes) -> str:
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def test_a_file_is_read_once(tmp_path: Path, counted: list[int]) -> None:
    (tmp_path / "file").write_bytes(b"content")
    known = Digests(tmp_path / "own" / "digests")
    assert {known.of_file(tmp_path / "file") for _ in range(3)} == {of(b"content")}
    assert len(counted) == 1
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "own" / "digests").iterdir()] == [0o600]


def test_a_digest_is_not_remembered_of_content_that_is_not_on_the_disk(
    tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure the file may have the same size and times, and another content."""
    (tmp_path / "file").write_bytes(b"content")
    known = Digests(tmp_path / "digests")

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(digests, "write_out", fail)
    assert {known.of_file(tmp_path / "file") for _ in range(2)} == {of(b"content")}
    assert len(counted) == 2


def test_a_change_with_the_old_size_and_times_is_noticed(tmp_path: Path, counted: list[int]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    known, before = Digests(tmp_path / "digests"), file.stat()
    assert known.of_file(file) == of(b"content")
    file.write_bytes(b"CONTENT")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert known.of_file(file) == of(b"CONTENT")


def test_a_file_that_was_just_written_is_read_again(tmp_path: Path) -> None:
    """A write in the same tick of the clock would leave its times as they are."""
    (tmp_path / "file").write_bytes(b"content")
    Digests(tmp_path / "digests").of_file(tmp_path / "file")
    assert not (tmp_path / "digests").exists()


def test_without_a_writable_directory_nothing_is_remembered(tmp_path: Path, counted: list[int]) -> None:
    (tmp_path / "file").write_bytes(b"content")
    for directory in (None, tmp_path / "file" / "below"):
        for _ in range(2):
            assert Digests(directory).of_file(tmp_path / "file") == of(b"content")
    assert len(counted) == 4


@pytest.mark.timeout(20)
@pytest.mark.parametrize("content", ["", "1 2 3 sha256:0\n", "9" * 600, "1 1 1 sha256:" + "0" * 64 + "\n", None])
def test_a_damaged_note_is_not_used(tmp_path: Path, counted: list[int], content: str | None) -> None:
    (tmp_path / "file").write_bytes(b"content")
    known = Digests(tmp_path / "digests")
    known.of_file(tmp_path / "file")
    (note,) = (tmp_path / "digests").iterdir()
    note.unlink()
    if content is None:
        os.mkfifo(note, 0o600)
    else:
        note.write_text(content)
    assert known.of_file(tmp_path / "file") == of(b"content")
    assert len(counted) == 2


def test_a_note_that_others_could_write_is_not_used(tmp_path: Path, counted: list[int]) -> None:
    (tmp_path / "file").write_bytes(b"content")
    known = Digests(tmp_path / "digests")
    known.of_file(tmp_path / "file")
    (tmp_path / "digests").chmod(0o777)
    assert known.of_file(tmp_path / "file") == of(b"content")
    assert len(counted) == 2


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"content")
    real = digests.compute

    def changing(descriptor: int) -> str:
        file.write_bytes(b"more content")
        return real(descriptor)

    monkeypatch.setattr(digests, "compute", changing)
    with pytest.raises(OSError, match="changed while"):
        Digests(None).of_file(file)


def test_a_removed_file_is_forgotten(tmp_path: Path, counted: list[int]) -> None:
    (tmp_path / "file").write_bytes(b"content")
    known = Digests(tmp_path / "digests")
    known.of_file(tmp_path / "file")
    known.forget((tmp_path / "file").stat())
    assert list((tmp_path / "digests").iterdir()) == []
    known.forget((tmp_path / "file").stat())
