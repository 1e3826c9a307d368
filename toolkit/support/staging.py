"""Work in progress: a folder that is removed with the work, or, after a crash, by the next one to come."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = ".ctk-work-"


@contextlib.contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, removed when the block ends; folders that a killed process left there go first.

    A living process holds a lock on its folder, so that only dead ones are swept away. Raises WrongInput where
    `parent` is not a folder that can be written.
    """
    sweep(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    except OSError as error:
        raise WrongInput(f"cannot write in {parent}: {error.strerror}", fix="Choose a folder that is yours.") from error
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
    finally:
        remove_tree(folder)
        os.close(descriptor)


def sweep(parent: Path) -> None:
    """Remove the staging folders in `parent` whose process is gone."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
            finally:
                os.close(descriptor)


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
