"""Open what a store holds only if no untrusted user can have written it: checked by descriptors, step by step."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from toolkit.support.ownership import is_trusted, user_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: a pipe in place of a file must not block the build.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Untrusted(OSError):  # noqa: N818
    """Something on the way to a file could have been put there by another user, or is no regular file."""


def open_directory(root: Path, names: Sequence[str], owners: frozenset[int] = frozenset()) -> int:
    """A descriptor of the directory `root/names…`; `root` itself may be a symlink, nothing below it.

    Raises Untrusted if one of these directories belongs to a user who is not trusted and not in `owners`, or others
    can write to it, and OSError if it cannot be opened.
    """
    descriptor = os.open(root, _DIRECTORY)
    try:
        _require_trusted(descriptor, str(root), owners)
        for number, name in enumerate(names, 1):
            below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
            _require_trusted(descriptor, os.path.join(root, *names[:number]), owners)  # noqa: PTH118
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_file(directory: int, name: str, owners: frozenset[int] = frozenset()) -> int:
    """A descriptor of the regular file `name` in an open directory. Raises as `open_directory` does."""
    descriptor = os.open(name, _FILE, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Untrusted(f"{name} is not a regular file")
        _require_trusted(descriptor, name, owners)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_trusted(descriptor: int, name: str, owners: frozenset[int]) -> None:
    status = os.fstat(descriptor)
    if not is_trusted(status.st_uid) and status.st_uid not in owners:
        raise Untrusted(f"{name} belongs to {user_name(status.st_uid)}")
    if status.st_mode & _OTHERS_WRITE:
        raise Untrusted(f"others can write to {name}")
