"""Staging directories: removed when the work ends or, after a crash, by the next run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import stat
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from toolkit.support.durable import exchange, sync, sync_directory
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.files import FULL, not_written
from toolkit.support.namespace import as_owner
from toolkit.support.ownership import change_own_mode
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = ".ctk-work-"
_LOCK = "lock"
_SECONDS_TO_LOCK = 3600.0  # more than any process takes from the directory to its lock, on a suspended host too


@contextlib.contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A new directory in `parent`, removed when the block ends. First remove the directories of killed processes there.

    A running process holds a lock on the file `lock` in its directory, so that its directory is not removed. Raises
    WrongInput if `parent` is not a writable directory, MissingOnHost (`disk-full`).
    """
    sweep(parent)
    try:
        directory = Path(tempfile.mkdtemp(prefix=_prefix(), dir=parent))
    except OSError as error:
        if error.errno in FULL:
            raise not_written(parent, error) from error
        raise WrongInput(f"cannot write to {parent}: {error.strerror}", fix="Choose a writable directory.") from error
    try:
        # A file, not the directory itself: NFS gives an exclusive lock only on what is open for writing (flock(2)).
        # It gets its name after it is locked, so that no other process can lock it first.
        nameless = directory / f"{_LOCK}.new"
        with nameless.open("w") as lock:
            _try_to_lock(lock)
            nameless.rename(directory / _LOCK)
            try:
                yield directory
            finally:
                _empty(directory)
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
                if path.name.startswith(prefix):
                    _remove_left_behind(path)


def _remove_left_behind(path: Path) -> None:
    """Remove `path` if it is a staging directory of this user, and its process has exited."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # mkdtemp made it with mode 0700, so no other user can have changed anything in it.
        status = os.fstat(directory)
        if not _is_own(directory) or status.st_mode & 0o077:
            return
        names = set(os.listdir(directory))  # noqa: PTH208 - by its descriptor
        if names <= {f"{_LOCK}.new"}:  # its process is just beginning or ending, or was killed then
            if time.time() - status.st_mtime > _SECONDS_TO_LOCK:
                remove_tree(path)
            return
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not block the build
        with os.fdopen(os.open(_LOCK, flags, dir_fd=directory), "rb", buffering=0) as lock:
            if not (_is_lock(lock) and _try_to_lock(lock) and os.fstat(lock.fileno()).st_nlink):
                return
            # The lock is held until nothing is left: another process that sweeps must not begin to remove it, too.
            _empty(path)
    finally:
        os.close(directory)
    remove_tree(path)


def _empty(directory: Path) -> None:
    """Remove what is in a staging directory, the lock last. Its caller holds the lock, and closes it before rmdir.

    NFS keeps an open file that is removed as `.nfs…`, so that the directory itself can be removed only then.
    """
    with contextlib.suppress(OSError):
        change_own_mode(directory, add=0o700)
    with contextlib.suppress(OSError):  # who had the directory may have removed it
        for path in directory.iterdir():
            if path.name != _LOCK:
                remove_tree(path)
        (directory / _LOCK).unlink(missing_ok=True)


def _is_lock(lock: IO[Any]) -> bool:
    status = os.fstat(lock.fileno())
    return stat.S_ISREG(status.st_mode) and status.st_size == 0 and _is_own(lock.fileno())


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
    """Remove a file, or a directory and its content: read-only ones, and files of this user's subordinate ids, too.

    A rootless build leaves files that belong to ids of /etc/subuid; this user can remove them only
    in a user namespace. Symlinks in it are removed, never followed. Raises MissingOnHost if that is not possible.
    """
    if not os.path.lexists(path):
        return
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
            return
        shutil.rmtree(path)
    except RecursionError:  # before Python 3.13: rm(1) has no such limit
        pass
    except OSError:
        _open_directories(path)
        with contextlib.suppress(RecursionError):
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
    """Rename `new`, a file or a directory on the same file system, to `final`, and replace an existing one.

    Both are on the disk before and after: a power failure leaves the old one or the new one. Raises OSError.
    """
    sync(new)
    if not final.is_dir() or final.is_symlink():
        new.replace(final)
    elif not exchange(new, final):
        _exchange_by_renames(new, final)
    sync_directory(final.parent)
    sync_directory(new.parent)
    remove_tree(new)


def _exchange_by_renames(new: Path, final: Path) -> None:
    """Swap two directories. Between the renames the old one is next to `final`: what is in `new.parent` is swept."""
    aside = final.with_name(f".{final.name}.{new.parent.name}.old")
    final.rename(aside)
    try:
        new.rename(final)
    except BaseException:
        aside.rename(final)
        raise
    aside.rename(new)
