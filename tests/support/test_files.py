"""Files that appear whole or not at all, and work directories that vanish with their process."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from toolkit.support import files
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.files import format_size, free_space, locked, make_directory, require_writable, write_atomically
from toolkit.support.paths import WorkArea

if TYPE_CHECKING:
    from pathlib import Path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_written_whole_with_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "f", "日本\n", mode=0o755)
    finally:
        os.umask(before)
    assert (tmp_path / "f").read_text(encoding="utf-8") == "日本\n"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o750
    assert names(tmp_path) == ["f"]


def test_directories_are_closed_to_others_under_any_umask(tmp_path: Path) -> None:
    def modes(*names: str) -> list[int]:
        return [(tmp_path / name).stat().st_mode & 0o777 for name in names]

    before = os.umask(0)
    try:
        make_directory(tmp_path / "a/b/c")
        make_directory(tmp_path / "a/shared", 0o755)
        make_directory(tmp_path / "a")
        make_directory(tmp_path / "closed/b", above=0o700)
        WorkArea(tmp_path / "above/area", "CTK_HOME").create()
        with locked(tmp_path / "above/area/store/locks/x.lock"):
            pass
    finally:
        os.umask(before)
    assert modes("a", "a/b", "a/b/c", "a/shared") == [0o755, 0o755, 0o700, 0o755]
    assert modes("closed", "closed/b") == [0o700, 0o700]
    assert modes("above", "above/area", "above/area/cache") == [0o755, 0o700, 0o700]
    assert modes("above/area/store", "above/area/store/locks") == [0o755, 0o700]


def test_a_file_s_name_in_a_text_keeps_its_bytes(tmp_path: Path) -> None:
    write_atomically(tmp_path / "f", "LD_LIBRARY_PATH=/caf\udce9\n")
    assert (tmp_path / "f").read_bytes() == b"LD_LIBRARY_PATH=/caf\xe9\n"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_atomically(tmp_path / "f", "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fdopen", full)
    with pytest.raises(MissingOnHost, match="No space left"):
        write_atomically(tmp_path / "f", "new")
    assert (tmp_path / "f").read_text() == "old"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("place", ["missing/f", "directory"])
def test_a_wrong_place_is_wrong_input(tmp_path: Path, place: str) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(WrongInput, match="cannot write"):
        write_atomically(tmp_path / place, "x")
    assert names(tmp_path) == ["directory"]


def test_a_file_that_is_there_keeps_its_mode_where_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o600)
    write_atomically(tmp_path / "f", "new", keep_mode=True)
    assert (tmp_path / "f").read_text() == "new"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


def test_free_space_is_that_of_the_nearest_directory_that_is_there(tmp_path: Path) -> None:
    there = os.statvfs(tmp_path)
    assert abs(free_space(tmp_path / "not" / "yet") - there.f_bavail * there.f_frsize) < 1 << 30


LEAVE_A_DIRECTORY = """
import os, pathlib, sys
from toolkit.support.staging import staging
with staging(pathlib.Path(sys.argv[1])) as directory:
    (directory / "image").write_text("half")
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (1 << 50, "1024.0 TiB"),
    ],
)
def test_sizes(size_bytes: int, words: str) -> None:
    assert format_size(size_bytes) == words


def test_read_only_directory_is_named_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_writable(tmp_path / "defs/mine.toml")
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)
    with pytest.raises(WrongInput, match=f"cannot write {tmp_path}/defs/mine.toml: {tmp_path} belongs to ") as caught:
        require_writable(tmp_path / "defs/mine.toml")
    assert caught.value.code == "not-writable"
