"""Work in progress: a folder that is removed with the work, or, after a crash, by the next one to come."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = ".ctk-work-"
_LOCK = "lock"


@contextlib.contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, removed when the block ends; folders that a killed process left there go first.

    A living process holds a lock on the file `lock` in its folder, so that only dead ones are swept away. Raises
    WrongInput where `parent` is not a folder that can be written.
    """
    sweep(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(), dir=parent))
    except OSError as error:
        raise WrongInput(f"cannot write in {parent}: {error.strerror}", fix="Choose a folder that is yours.") from error
    try:
        # A file, not the folder itself: NFS gives an exclusive lock only on what is open for writing (flock(2)).
        # It gets its name when it is locked, so that nobody can lock it first.
        nameless = folder / f"{_LOCK}.new"
        with nameless.open("w") as lock:
            _try_to_lock(lock)
            nameless.rename(folder / _LOCK)
            yield folder
    finally:
        remove_tree(folder)


def sweep(parent: Path) -> None:
    """Remove the staging folders in `parent` that processes of this host left when they were killed."""
    for folder in parent.glob(f"{_prefix()}*"):
        with contextlib.suppress(OSError):
            with (folder / _LOCK).open("r+") as lock:
                dead = _try_to_lock(lock)
            # Now that it is closed: on NFS an open file that is removed stays as `.nfs…`, and its folder with it.
            if dead:
                remove_tree(folder)


def _prefix() -> str:
    """On a shared file system another host's lock may not be seen, so that each host sweeps its own folders only."""
    return f"{_PREFIX}{socket.gethostname()}-"


def _try_to_lock(lock: TextIO) -> bool:
    """Lock an open file until it is closed. False where another process holds it, or the file system has no locks."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it, read-only folders and files of this user's subordinate ids included.

    A rootless build leaves files that belong to ids of /etc/subuid; only inside a user namespace may their owner
    remove them. Raises MissingOnHost where that is not possible here.
    """
    if not path.exists():
        return
    try:
        shutil.rmtree(path)
    except OSError:
        for folder, _, _ in os.walk(path):
            with contextlib.suppress(OSError):
                Path(folder).chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        run(["unshare", "--map-root-user", "--map-auto", "rm", "-rf", "--", str(path)])
    if path.exists():
        raise MissingOnHost(f"cannot remove {path}: files in it belong to subordinate ids of this user")


def put_in_place(new: Path, final: Path) -> None:
    """Rename `new`, a file or a folder on the same file system, to `final`; what stands there is replaced."""
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
