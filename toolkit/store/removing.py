"""Remove an entry: first its name, by one rename that needs no space, then its files."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from toolkit.store.entries import RECORD, Kind
from toolkit.support.errors import MissingOnHost
from toolkit.support.files import FULL
from toolkit.support.staging import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolkit.store.digests import Digests

# Whatever has this name is nobody's any more: any process may remove it at any time.
_PREFIX = ".removed-"


def identity(path: Path) -> tuple[int, int] | None:
    """What tells an entry from another one that took its place; None if there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def remove_entry(path: Path, digests: Digests, still: Callable[[Path], bool]) -> bool:
    """Remove the entry at `path`, if `still` is true of it where no other process finds it any more.

    Otherwise it gets its name back, unless another process has made it again. Returns whether it is gone: false, too,
    if another process removed it first. Raises OSError if the store is not writable.
    """
    if not still(path):  # what gets its name back may be half removed: another process may sweep what is aside
        return False
    aside = path.with_name(f"{_PREFIX}{path.name}-{secrets.token_hex(8)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in FULL:
            raise
        return _remove_in_place(path, digests, still)
    if not still(aside):
        with contextlib.suppress(OSError):
            aside.rename(path)
            return False
    _delete_entry(aside, digests)
    return True


def _remove_in_place(path: Path, digests: Digests, still: Callable[[Path], bool]) -> bool:
    """Remove an entry where a full disk or quota forbids even a new name; without its record it is none any more."""
    if not still(path):
        return False
    (path / RECORD).unlink(missing_ok=True)
    _delete_entry(path, digests)
    return True


def _delete_entry(path: Path, digests: Digests) -> None:
    with contextlib.suppress(OSError):
        for file in path.iterdir():
            digests.forget(file.lstat())
    _delete(path)


def sweep_removed(root: Path) -> None:
    """Remove what processes that were killed had begun to remove."""
    for kind in Kind:
        with contextlib.suppress(OSError), os.scandir(root / kind) as found:
            for file in found:
                if file.name.startswith(_PREFIX):
                    _delete(root / kind / file.name)


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError, MissingOnHost):
        remove_tree(path)
