"""The error for the user from an OSError that nobody expected."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from toolkit.support.errors import CtkError, MissingOnHost, WrongInput
from toolkit.support.files import FULL, format_free, not_written
from toolkit.support.ownership import user_name
from toolkit.support.processes import command_line

# A user can fix these by choosing another path. The others (a full or broken disk, no file handles) are the host's.
_OF_THE_PATH = (
    *(errno.EACCES, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
    *(errno.ENOENT, errno.ENOTDIR, errno.EPERM),
)


def from_os_error(error: OSError) -> CtkError:
    """The error with its path, and the free space if a disk is full."""
    reason = error.strerror or str(error)
    if error.errno in FULL:
        return _full(error.filename, error)
    if error.filename is None:
        return MissingOnHost(f"operating system error: {reason}", code="system-error")
    kind = WrongInput if error.errno in _OF_THE_PATH else MissingOnHost
    return kind(f"cannot use {error.filename}: {reason}", code="system-error")


def unreadable(path: Path) -> WrongInput:
    """The error for a file that this user may not read: whose it is, and what to ask for."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - no symlink is resolved, which may need the permission
    closed = next((parent for parent in reversed(whole.parents) if not os.access(parent, os.X_OK)), whole)
    needed, what = ("a+r", "it") if closed == whole else ("a+x", f"the directory {closed}")
    try:
        status = closed.stat()
    except OSError as error:
        return WrongInput(f"cannot read {path}: {error.strerror}")
    if os.access(closed, os.R_OK):  # what refuses it is not the mode
        return WrongInput(f"cannot read {path}: {os.strerror(errno.EACCES)}")
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.geteuid():
        command = command_line(["chmod", needed.replace("a", "u"), str(closed)])
        return WrongInput(f"cannot read {path}: {what} has mode {mode:04o}", fix=command)
    owner = user_name(status.st_uid)
    command = command_line(["chmod", needed, str(closed)])
    return WrongInput(
        f"cannot read {path}: {what} belongs to {owner} and has mode {mode:04o}, which does not let you",
        fix=f"Ask {owner} for the permission ({command}), or for a copy.",
    )


def _full(name: str | bytes | int | None, error: OSError) -> CtkError:
    """write(2) on an open file does not say which one: then the disks that commands write to are named."""
    if isinstance(name, str | bytes):
        return not_written(Path(os.fsdecode(name)), error)
    output = Path(os.path.realpath("/proc/self/fd/1"))
    directories = (os.environ.get("CTK_HOME"), os.environ.get("TMPDIR") or "/tmp")  # noqa: S108
    places = [*([output] if output.is_file() else []), Path(), *(Path(name) for name in directories if name)]
    shown = (f"{os.path.realpath(path)} ({format_free(path)})" for path in places)
    return MissingOnHost(
        f"{error.strerror}: a disk or a quota is full, one of: {', '.join(dict.fromkeys(shown))}",
        fix="Free some space there; `quota -s` may show a quota that is used up.",
        code="disk-full",
    )
