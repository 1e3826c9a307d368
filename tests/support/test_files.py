"""Files that appear whole or not at all, and work directories that vanish with their process."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.support import files, staging
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.files import free_space, write_atomically
from toolkit.support.staging import put_in_place, remove_tree, sweep
from toolkit.support.staging import staging as staged


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


# --- work directories


def test_a_work_directory_goes_with_its_block_even_after_an_error(tmp_path: Path) -> None:
    with staged(tmp_path) as directory:
        (directory / "sub").mkdir()
        (directory / "sub" / "read-only").touch(0o400)
        (directory / "sub").chmod(0o500)
    assert names(tmp_path) == []
    with pytest.raises(KeyError), staged(tmp_path):
        raise KeyError
    assert names(tmp_path) == []


LEAVE_A_DIRECTORY = """
import os, pathlib, sys
from toolkit.support.staging import staging
with staging(pathlib.Path(sys.argv[1])) as directory:
    (directory / "image").write_text("half")
    print(directory, flush=True)
    sys.stdin.read()
"""


def supervisor(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    argv = [sys.executable, "-c", LEAVE_A_DIRECTORY, str(parent)]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child, Path(child.stdout.readline().strip())


def test_only_directories_of_exited_processes_are_removed(tmp_path: Path) -> None:
    dead, left = supervisor(tmp_path)
    living, kept = supervisor(tmp_path)
    dead.kill()
    dead.communicate()
    assert left.is_dir()
    sweep(tmp_path)
    assert not left.exists()
    assert kept.is_dir()
    living.communicate("")
    assert names(tmp_path) == []


def test_another_hosts_directory_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, left = supervisor(tmp_path)
    dead.kill()
    dead.communicate()
    monkeypatch.setattr(staging.socket, "gethostname", lambda: "another-host")
    sweep(tmp_path)
    assert left.is_dir()


def test_a_file_system_without_locks_is_worked_on_and_never_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Lustre is without `-o flock`."""
    dead, left = supervisor(tmp_path)
    dead.kill()
    dead.communicate()

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(staging.fcntl, "flock", no_locks)
    with staged(tmp_path) as directory:
        assert directory.is_dir()
    assert names(tmp_path) == [left.name]


def test_the_lock_is_one_that_nfs_grants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """flock(2): over NFS an exclusive lock needs a file that is open for writing."""
    asked = []

    def like_nfs(file: object, operation: int) -> None:
        flags = fcntl.fcntl(file, fcntl.F_GETFL)  # type: ignore[arg-type]
        asked.append(flags & os.O_ACCMODE)
        if operation & fcntl.LOCK_EX and flags & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(staging.fcntl, "flock", like_nfs)
    with staged(tmp_path):
        pass
    assert asked
    assert os.O_RDONLY not in asked


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_an_unwritable_directory_is_wrong_input(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WrongInput, match="cannot write to"), staged(tmp_path / kind):
        pass


def test_a_new_file_or_directory_takes_the_place_of_the_old(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for text in ("one", "two"):
        (work / "image").write_text(text)
        put_in_place(work / "image", tmp_path / "final.sif")
        assert (tmp_path / "final.sif").read_text() == text
        (work / "tree").mkdir()
        (work / "tree" / text).touch()
        put_in_place(work / "tree", tmp_path / "sb")
        assert names(tmp_path / "sb") == [text]
    assert names(work) == []


def test_the_old_directory_comes_back_where_the_new_one_cannot_come(tmp_path: Path) -> None:
    (tmp_path / "sb").mkdir()
    (tmp_path / "sb" / "mine").touch()
    (tmp_path / "work").mkdir()
    with pytest.raises(FileNotFoundError):
        put_in_place(tmp_path / "work" / "never made", tmp_path / "sb")
    assert names(tmp_path / "sb") == ["mine"]


def test_removing_what_is_not_there_is_done() -> None:
    remove_tree(Path("/no/such/directory"))
