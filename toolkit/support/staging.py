"""Staging directories: removed when the work ends or, after a crash, by the next run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.namespace import as_owner
from toolkit.support.ownership import change_own_mode
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = ".ctk-work-"
_LOCK = "lock"


@contextlib.contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A new directory in `parent`, removed when the block ends. First remove the directories of killed processes there.

    A running process holds a lock on the file `lock` in its directory, so that its directory is not removed. Raises
    WrongInput if `parent` is not a writable directory.
    """
    sweep(parent)
    try:
        directory = Path(tempfile.mkdtemp(prefix=_prefix(), dir=parent))
    except OSError as error:
        raise WrongInput(f"cannot write to {parent}: {error.strerror}", fix="Choose a writable directory.") from error
    try:
        # A file, not the directory itself: NFS gives an exclusive lock only on what is open for writing (flock(2)).
        # It gets its name after it is locked, so that no other process can lock it first.
        nameless = directory / f"{_LOCK}.new"
        with nameless.open("w") as lock:
            _try_to_lock(lock)
            nameless.rename(directory / _LOCK)
            yield directory
    finally:
        remove_tree(directory)


def sweep(parent: Path) -> None:
    """Remove the staging directories in `parent` that processes of this user on this host left when they were killed.

    In a shared directory any user can create a file of that name. Only directories like those of `staging` are removed.
    """
    prefix = _prefix()
    with contextlib.suppress(OSError):
        for path in parent.iterdir():
            with contextlib.suppress(OSError, MissingOnHost):
                if path.name.startswith(prefix) and _is_left_behind(path):
                    remove_tree(path)


def _is_left_behind(path: Path) -> bool:
    """Whether `path` is a staging directory of this user, and its process has exited."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # mkdtemp made it with mode 0700, so no other user can have changed anything in it.
        if not _is_own(directory) or os.fstat(directory).st_mode & 0o077:
            return False
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not block the build
        # Closed before the directory is removed: NFS keeps an open file that is removed as `.nfs…`.
        with os.fdopen(os.open(_LOCK, flags, dir_fd=directory), "rb", buffering=0) as lock:
            status = os.fstat(lock.fileno())
            is_lock = stat.S_ISREG(status.st_mode) and status.st_size == 0 and _is_own(lock.fileno())
            return is_lock and _try_to_lock(lock)
    finally:
        os.close(directory)


def _is_own(descriptor: int) -> bool:
    return os.fstat(descriptor).st_uid == os.geteuid()


def _prefix() -> str:
    """On a shared file system another host's lock may not be seen, so each host sweeps its own directories only."""
    return f"{_PREFIX}{socket.gethostname()}-"


def _try_to_lock(lock: IO[Any]) -> bool:
    """Lock an open file until it is closed. False if another process holds it, or the file system has no locks."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_tree(path: Path) -> None:
    """Remove a directory and its content, including read-only directories and files of this user's subordinate ids.

    A rootless build leaves files that belong to ids of /etc/subuid; this user can remove them only
    in a user namespace. Symlinks in it are removed, never followed. Raises MissingOnHost if that is not possible.
    """
    if not os.path.lexists(path):
        return
    try:
        shutil.rmtree(path)
    except OSError:
        _open_directories(path)
        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        run(as_owner(["rm", "-rf", "--", str(path)]))
    if os.path.lexists(path):
        raise MissingOnHost(f"cannot remove {path}: files in it belong to subordinate ids of this user")


def _open_directories(path: Path) -> None:
    """Let this user read and write each of their directories in `path`, by descriptors: symlinks are not followed."""
    with contextlib.suppress(OSError):
        change_own_mode(path, add=0o700)
        for _, names, _, directory in os.fwalk(path):
            for name in names:
                with contextlib.suppress(OSError):
                    change_own_mode(name, add=0o700, dir_fd=directory)


def put_in_place(new: Path, final: Path) -> None:
    """Rename `new`, a file or a directory on the same file system, to `final`, and replace an existing one."""
    if not final.is_dir() or final.is_symlink():
        new.replace(final)
        return
    aside = new.with_name(f"{new.name}.old")
    final.rename(aside)
    try:
        new.rename(final)
    except BaseException:
        aside.rename(final)
        raise
    remove_tree(aside)
