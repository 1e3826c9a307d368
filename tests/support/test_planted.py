"""Files that other users planted where ctk writes or cleans up: not followed, not removed, not waited for."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from toolkit.support import files
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.files import leads_into_hidden, locked, open_log, open_regular, refuse_link, write_atomically
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def lock_once(path: Path) -> None:
    with locked(path):
        pass


def log_once(path: Path) -> None:
    with open_log(path) as log:
        log.truncate(0)
        log.write("new")


def write_once(path: Path) -> None:
    write_atomically(path, "new")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("write", [write_once, log_once, lock_once])
@pytest.mark.parametrize("kind", ["file", "dangling", "loop", "directory"])
def test_a_symlink_is_refused_with_its_target(tmp_path: Path, write: Callable[[Path], None], kind: str) -> None:
    target = tmp_path / "target"
    if kind == "file":
        target.write_text("mine")
    if kind == "directory":
        target.mkdir()
    link = tmp_path / "my log"
    link.symlink_to("my log" if kind == "loop" else "target")
    before = names(tmp_path)
    with pytest.raises(WrongInput, match=f"my log is a symlink to {tmp_path}") as refused:
        write(link)
    assert refused.value.exit_status == 2
    assert str(refused.value.fix).endswith(f"rm -- '{link}'")
    assert names(tmp_path) == before
    assert kind != "file" or target.read_text() == "mine"


def test_a_parent_directory_may_be_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "logs").symlink_to("there")
    refuse_link(tmp_path / "logs" / "f")
    log_once(tmp_path / "logs" / "f")
    assert (tmp_path / "there" / "f").read_text() == "new"


def test_a_log_is_appended_to_with_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for text in ("one", "two"):
            with open_log(tmp_path / "log") as log:
                log.write(text)
    finally:
        os.umask(before)
    assert (tmp_path / "log").read_text() == "onetwo"
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o640


def test_a_log_with_two_hard_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    os.link(tmp_path / "mine", tmp_path / "log")
    with pytest.raises(WrongInput, match="log has more than one hard link"):
        log_once(tmp_path / "log")
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("place", ["directory", "missing/log"])
def test_a_log_that_cannot_be_written_is_missing_on_the_host(tmp_path: Path, place: str) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(MissingOnHost, match="cannot write"):
        open_log(tmp_path / place)
    assert names(tmp_path) == ["directory"]


@pytest.mark.timeout(20)
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for write in (lock_once, log_once):
        with pytest.raises(WrongInput, match="pipe is not a regular file"):
            write(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(tmp_path / "pipe")


def test_toml_is_read_from_a_regular_file_of_limited_size_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(WrongInput, match=f"{name} is not a regular file"):
            read_toml(tmp_path / name)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(8 * 2**20 + 1)
    with pytest.raises(WrongInput, match=r"large is larger than 8\.0 MiB"):
        read_toml(tmp_path / "large")
    (tmp_path / "shared").symlink_to("recipe")
    (tmp_path / "recipe").write_text("a = 1\n")
    assert read_toml(tmp_path / "shared").content == {"a": 1}


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WrongInput, match="pipe is not a regular file"):
        write_atomically(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()


HOLD = """
import pathlib, sys
from toolkit.support.files import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", HOLD, str(path)]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_a_lock_file_is_held_once_and_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    lock_once(path)
    path.write_text("a word")
    child = holder(path)
    with pytest.raises(WrongInput, match="taken"), locked(path, taken=WrongInput("taken")):
        pass
    child.communicate("\n")
    with locked(path, taken=WrongInput("taken")):
        assert path.read_text() == "a word"


@pytest.mark.timeout(20)
def test_a_killed_lock_holder_does_not_block(tmp_path: Path) -> None:
    child = holder(tmp_path / "lock")
    child.kill()
    child.communicate()
    with locked(tmp_path / "lock", taken=WrongInput("taken")):
        pass
    assert names(tmp_path) == ["lock"]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK], ids=errno.errorcode.get)
@pytest.mark.timeout(20)
def test_lock_on_a_file_system_without_locks_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As on Lustre without `-o flock`, and on NFS without its lock daemon; the file keeps its content."""
    (tmp_path / "lock").write_text("a word")

    def no_locks(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    with locked(tmp_path / "lock"), locked(tmp_path / "lock", taken=WrongInput("taken")):
        assert (tmp_path / "lock").read_text() == "a word"


@pytest.mark.timeout(20)
def test_after_a_lock_file_is_removed_the_new_one_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path):
        argv = [sys.executable, "-c", HOLD, str(path)]
        waiting = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
        path.unlink()
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == b"held\n"
    with pytest.raises(WrongInput, match="taken"), locked(path, taken=WrongInput("taken")):
        pass
    waiting.communicate(b"\n")


def test_a_symlink_into_a_hidden_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".bashrc.d").mkdir()
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "defs").symlink_to("../.bashrc.d")
    with pytest.raises(WrongInput, match=r"hidden directory .*\.bashrc\.d"):
        write_atomically(tmp_path / "clone" / "defs" / "x.lock.toml", "words")
    assert leads_into_hidden(tmp_path / ".bashrc.d") is None
