"""The owner of a file, and mode changes through a descriptor: never of another user's file, never through a symlink."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from pathlib import Path


def is_trusted(uid: int) -> bool:
    """Whether ctk may execute or build from files of `uid`: this user, or root, who could change everything anyway."""
    return uid in (0, os.geteuid())


def user_name(uid: int) -> str:
    """The login name of a user id; the number if the password file has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def others_can_change(status: os.stat_result) -> bool:
    """Whether a user other than this one and root can write to a file: its owner, or who its mode allows.

    The group of a user's own name has no other members: with it, a umask of 002 is usual.
    """
    mode = status.st_mode
    by_group = bool(mode & stat.S_IWGRP) and not _is_private(status.st_gid)
    return not is_trusted(status.st_uid) or by_group or bool(mode & stat.S_IWOTH)


def _is_private(gid: int) -> bool:
    try:
        return grp.getgrgid(gid).gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False


def change_own_mode(
    path: str | os.PathLike[str], *, add: int = 0, remove: int = 0, dir_fd: int | None = None, follow: bool = False
) -> None:
    """Add or remove bits of the mode of a file or a directory of this user; leave anything else as it is.

    The mode is changed through a descriptor, so that no symlink can be put in its place between. A symlink is followed
    only with `follow`. Raises OSError.
    """
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW), dir_fd=dir_fd)
    try:
        status = os.fstat(descriptor)
        if status.st_uid == os.geteuid() and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
            # O_PATH also opens files of mode 000. fchmod(2) refuses such a descriptor; its name in /proc works.
            Path(f"/proc/self/fd/{descriptor}").chmod((stat.S_IMODE(status.st_mode) | add) & ~remove)
    finally:
        os.close(descriptor)


def make_plain(directory: Path) -> None:
    """Let what is made in `directory`, a private one of this user, inherit neither its group nor permissions.

    Site scratch often has the setgid bit or default ACLs (acl(5)), and a file system may lack either.
    """
    for name in ("system.posix_acl_default", "system.posix_acl_access"):
        with contextlib.suppress(OSError):
            os.removexattr(directory, name, follow_symlinks=False)
    with contextlib.suppress(OSError):
        os.chown(directory, -1, os.getegid(), follow_symlinks=False)
    change_own_mode(directory, add=0o700, remove=0o7077)
