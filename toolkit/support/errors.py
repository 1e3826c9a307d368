"""The errors that a user can cause or meet, each with its exit status and, if there is one, the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class CtkError(Exception):
    """An error for the user: what happened, and what to do.

    `code` is the stable kebab-case name that `--json` carries; `exit_status` is the exit status of the command.
    """

    exit_status = 2
    code = "wrong-input"

    def __init__(self, message: str, *, fix: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        if code is not None:
            self.code = code


class CheckFailed(CtkError):  # noqa: N818 - it is an answer, not an error
    """The check was done, and its answer is no (exit status 1)."""

    exit_status = 1
    code = "answer-is-no"


class WrongInput(CtkError):  # noqa: N818
    """The user's input is not usable (exit status 2)."""


class MissingOnHost(CtkError):  # noqa: N818
    """Something is missing on this host (exit status 3)."""

    exit_status = 3
    code = "missing-on-host"


class ProgramFailed(CtkError):  # noqa: N818
    """A program that ctk called failed (exit status 4). Its last lines are shown; its full log is kept."""

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
