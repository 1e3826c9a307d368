"""Check write permission for a build's output before the build, which may take an hour."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from toolkit.builds.record import record_beside
from toolkit.support.errors import WrongInput
from toolkit.support.ownership import user_name

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.request import BuildRequest

_FIX = "Choose another name or directory with -o."


def check_permission(request: BuildRequest) -> None:
    """Raise WrongInput (`not-writable`) if the output, its log or its record cannot be written by this user.

    Nor may the output be the base itself (`output-is-base`), whatever the user allows.
    """
    base = request.recipe.base if request.recipe else request.base
    if base is not None and base.is_local and os.path.realpath(base.path) == os.path.realpath(request.output):
        raise WrongInput(
            f"the output {request.output} is the base of this build, which would be replaced",
            fix="Name another output with -o.",
            code="output-is-base",
        )
    parent = request.output.parent
    if not os.access(parent, os.W_OK | os.X_OK):
        raise _refused(f"cannot write to {parent}: it belongs to {_owner(parent)}, or is read-only")
    replaced = [request.output, record_beside(request.output)] if request.sandbox else [request.output]
    for path in (*replaced, request.log):
        _check_owner(path)
    for path in replaced:
        _check_replaceable(path)
    if request.log.exists() and not os.access(request.log, os.W_OK):
        raise _refused(f"cannot write the log {request.log}: it belongs to {_owner(request.log)}, or is read-only")


def _check_owner(path: Path) -> None:
    """In a sticky directory, as /tmp is, only the owner of a file or of the directory may replace it (unlink(2))."""
    parent, me = path.parent.stat(), os.geteuid()
    if not parent.st_mode & stat.S_ISVTX or me in (0, parent.st_uid) or not os.path.lexists(path):
        return
    if path.lstat().st_uid != me:
        raise _refused(f"{path} belongs to {_owner(path)}, and only its owner can replace it in {path.parent} (sticky)")


def _check_replaceable(path: Path) -> None:
    if path.is_dir():
        # It is moved aside, which needs write permission, and removed with all that is in it.
        if not os.access(path, os.W_OK) or os.geteuid() not in (0, path.stat().st_uid):
            raise _refused(f"cannot replace the directory {path}: it belongs to {_owner(path)}, or is read-only")
        return
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
    except PermissionError as error:
        # EACCES is the file's mode, which does not matter for a rename. EPERM is its attribute (chattr(1)).
        if error.errno == errno.EPERM:
            raise _refused(f"cannot replace {path}: it is immutable or append-only (see `lsattr`)") from error
    except OSError:
        pass  # it does not exist, or is being executed


def _owner(path: Path) -> str:
    return user_name(path.lstat().st_uid)


def _refused(message: str) -> WrongInput:
    return WrongInput(message, fix=_FIX, code="not-writable")
