"""The error for the user from an OSError that nobody expected."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from toolkit.support.errors import CtkError, MissingOnHost, WrongInput
from toolkit.support.files import FULL, format_free, not_written

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
