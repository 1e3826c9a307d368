"""The errors that a user can cause or meet, each with its exit status and, where there is one, the way out."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class CtkError(Exception):
    """Something a user should read: what happened, and how to go on.

    `code` is the stable kebab-case name that `--json` carries; `exit_status` is what the command ends with.
    """

    exit_status = 2
    code = "wrong-input"

    def __init__(self, message: str, *, fix: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        if code is not None:
            self.code = code


class CheckFailed(CtkError):  # noqa: N818 - it is an answer, not a fault
    """The question was well put and the answer is no (exit status 1)."""

    exit_status = 1
    code = "answer-is-no"


class WrongInput(CtkError):  # noqa: N818
    """What the user gave cannot be used (exit status 2)."""


class MissingOnHost(CtkError):  # noqa: N818
    """This machine lacks something that is needed (exit status 3)."""

    exit_status = 3
    code = "missing-on-host"


class ProgramFailed(CtkError):  # noqa: N818
    """A program that ctk called failed (exit status 4). Its last lines are shown; its whole log is kept."""

    exit_status = 4
    code = "program-failed"

    def __init__(
        self,
        message: str,
        *,
        fix: str | None = None,
        code: str | None = None,
        last_lines: tuple[str, ...] = (),
        log: Path | None = None,
    ) -> None:
        super().__init__(message, fix=fix, code=code)
        self.last_lines = last_lines
        self.log = log


# What a user can mend by naming another path; the rest (a full disk, a broken one, no more file handles) is the host.
_OF_THE_PATH = (
    *(errno.EACCES, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
    *(errno.ENOENT, errno.ENOTDIR, errno.EPERM),
)


def from_os_error(error: OSError) -> CtkError:
    """What an OSError that nobody expected means to a user: with its path, as any other error."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return MissingOnHost(f"the system refused: {reason}", code="system-error")
    kind = WrongInput if error.errno in _OF_THE_PATH else MissingOnHost
    return kind(f"cannot use {error.filename}: {reason}", code="system-error")
