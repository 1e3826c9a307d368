"""Work directories, and outputs that appear by rename."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.test_files import LEAVE_A_DIRECTORY, names
from toolkit.support import staging
from toolkit.support.errors import WrongInput
from toolkit.support.staging import put_in_place, remove_tree, sweep
from toolkit.support.staging import staging as staged


@pytest.mark.timeout(20)
def test_a_directory_that_resembles_a_leftover_is_kept(tmp_path: Path) -> None:
    prefix = f".ctk-work-{socket.gethostname()}-"
    victim = tmp_path / "victim"
    (victim / "deep").mkdir(parents=True)
    (victim / "lock").touch()
    for name in ("directory", "fifo", "link", "full", "open", "none"):
        (tmp_path / f"{prefix}{name}").mkdir(mode=0o700)
    (tmp_path / f"{prefix}directory" / "lock").mkdir()
    os.mkfifo(tmp_path / f"{prefix}fifo" / "lock")
    (tmp_path / f"{prefix}link" / "lock").symlink_to(victim / "lock")
    (tmp_path / f"{prefix}full" / "lock").write_text("somebody's")
    (tmp_path / f"{prefix}open" / "lock").touch()
    (tmp_path / f"{prefix}open").chmod(0o755)
    (tmp_path / f"{prefix}victim").symlink_to(victim)
    victim.chmod(0o700)
    os.mkfifo(tmp_path / f"{prefix}pipe")
    before = names(tmp_path)
    (tmp_path / f"{prefix}dead").mkdir(mode=0o700)
    (tmp_path / f"{prefix}dead" / "lock").touch()
    sweep(tmp_path)
    assert names(tmp_path) == before
    assert names(victim) == ["deep", "lock"]


def test_removing_a_tree_does_not_follow_symlinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, tree = tmp_path / "victim", tmp_path / "tree"
    for directory in (victim / "closed", tree / "closed" / "deeper"):
        directory.mkdir(parents=True)
    (victim / "file").touch()
    for place in (tree, tree / "closed", tree / "closed" / "deeper"):
        (place / "directory").symlink_to(victim)
        (place / "file").symlink_to(victim / "file")
    for directory in (tree / "closed" / "deeper", tree / "closed", victim / "closed", victim):
        directory.chmod(0o500)
    really = shutil.rmtree

    def refused_at_first(path: Path, ignore_errors: bool = False) -> None:
        """Root can remove unwritable directories; an ordinary user must change their mode first."""
        if not ignore_errors:
            raise PermissionError
        assert {path.stat().st_mode & 0o777 for path in (tree / "closed", tree / "closed" / "deeper")} == {0o700}
        really(path)

    monkeypatch.setattr(shutil, "rmtree", refused_at_first)
    remove_tree(tree)
    assert not tree.exists()
    assert [path.stat().st_mode & 0o777 for path in (victim, victim / "closed")] == [0o500, 0o500]
    assert names(victim) == ["closed", "file"]


def test_a_work_directory_goes_with_its_block_even_after_an_error(tmp_path: Path) -> None:
    with staged(tmp_path) as directory:
        (directory / "sub").mkdir()
        (directory / "sub" / "read-only").touch(0o400)
        (directory / "sub").chmod(0o500)
    assert names(tmp_path) == []
    with pytest.raises(KeyError), staged(tmp_path):
        raise KeyError
    assert names(tmp_path) == []


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


@pytest.mark.parametrize("atomic", [True, False])
def test_a_kill_while_a_directory_is_replaced_leaves_the_old_one_or_the_new_one(
    atomic: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS cannot exchange two names. What is in the staging directory then is removed by the next process."""
    if not atomic:
        monkeypatch.setattr(staging, "exchange", lambda *_: False)
    (tmp_path / "sb").mkdir()
    (tmp_path / "sb/old").touch()
    rename, after_each = Path.rename, []

    def renaming(path: Path, target: Path) -> Path:
        done = rename(path, target)
        if target.name != "lock":
            kept = (found for found in tmp_path.iterdir() if not found.name.startswith(".ctk-work-"))
            after_each.append([next(found.iterdir()).name for found in kept])
        return done

    monkeypatch.setattr(Path, "rename", renaming)
    with staged(tmp_path) as work:
        (work / "image").mkdir()
        (work / "image/new").touch()
        put_in_place(work / "image", tmp_path / "sb")
        assert names(work) == ["lock"]
    assert names(tmp_path) == ["sb"]
    assert names(tmp_path / "sb") == ["new"]
    assert len(after_each) == (0 if atomic else 3)
    assert all({"old", "new"} & set(found) for found in after_each), after_each


def test_removing_what_is_not_there_is_done() -> None:
    remove_tree(Path("/no/such/directory"))


def test_many_threads_and_processes_with_directories_of_one_parent(tmp_path: Path) -> None:
    """One that sweeps must not remove a directory while its owner does."""
    program = (
        "import sys, threading\n"
        "from pathlib import Path\n"
        "from toolkit.support.staging import staging\n"
        "def work():\n"
        "    for _ in range(30):\n"
        "        with staging(Path(sys.argv[1])) as directory:\n"
        "            for name in ('one', 'two', 'three'):\n"
        "                (directory / name).mkdir()\n"
        "                (directory / name / 'file').write_text(name)\n"
        "            assert len(list(directory.iterdir())) == 4\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    argv = [sys.executable, "-c", program, str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    children = [subprocess.Popen(argv, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for child in children:
        assert child.communicate(timeout=120) == ("", "")
    assert names(tmp_path) == []


def test_a_directory_is_locked_until_nothing_is_left_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise another process that sweeps removes it, too, and one of the two fails."""
    seen: list[list[str]] = []
    really = shutil.rmtree

    def sweeping(path: Path, ignore_errors: bool = False) -> None:
        sweep(tmp_path)
        (directory,) = tmp_path.iterdir()
        seen.append(names(directory))
        really(path, ignore_errors)

    dead, _ = supervisor(tmp_path)
    dead.kill()
    dead.communicate()
    (left,) = tmp_path.iterdir()
    (left / "sub").mkdir()
    monkeypatch.setattr(shutil, "rmtree", sweeping)
    sweep(tmp_path)
    with staged(tmp_path) as mine:
        (mine / "sub").mkdir()
    assert seen[0] in (["lock", "sub"], ["image", "lock", "sub"])
    assert seen[-2:] == [["lock", "sub"], []]
    assert names(tmp_path) == []


def test_a_process_that_was_killed_before_it_held_its_lock(tmp_path: Path) -> None:
    prefix = f".ctk-work-{socket.gethostname()}-"
    for name in ("old", "new"):
        for lock in ("", "lock.new"):
            directory = tmp_path / f"{prefix}{name}{lock}"
            directory.mkdir(mode=0o700)
            if lock:
                (directory / lock).touch()
            if name == "old":
                os.utime(directory, (1, 1))
    sweep(tmp_path)
    assert names(tmp_path) == [f"{prefix}new", f"{prefix}newlock.new"]


def test_a_file_or_a_symlink_is_removed_without_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("directory")
    for name in ("file", "link"):
        remove_tree(tmp_path / name)
    assert names(tmp_path) == ["directory"]


def test_tree_deeper_than_pythons_recursion_is_removed(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(tmp_path / "d")
    assert not any(tmp_path.iterdir())
