"""The submit directory of a job: the log begins there before it is in logs/."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput
from toolkit.support.files import leads_into_hidden
from toolkit.support.findings import Finding, Severity
from toolkit.support.ownership import is_trusted, user_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def check_place(directory: Path, name: str, title: str = "Slurm") -> tuple[Finding, ...]:
    """Warnings about submitting the job `name` from `directory`; `title` is the name of the scheduler.

    Raises WrongInput if something that no job wrote has the name of one of its logs, which would be written into
    (a cloned repository may hold `train-7.log -> ../.bash_profile`), or `logs` leads into a hidden directory.
    """
    for path in sorted(directory.glob(f"{name}-*.log")):
        if reason := _why_planted(path):
            raise WrongInput(
                f"{path} {reason}: {title} would write the log of the job with that number to it",
                fix="Remove it, or give the job another name.",
                code="log-name-taken",
            )
    if (hidden := leads_into_hidden(directory / "logs")) is not None:
        raise WrongInput(f"logs is a symlink to the hidden directory {hidden}", fix="Remove the link.", code="symlink")
    return tuple(_doubts(directory))


def _why_planted(path: Path) -> str | None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"is a symlink to {os.path.realpath(path)}"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if not is_trusted(status.st_uid):
        return f"belongs to {user_name(status.st_uid)}"
    return "has more than one hard link" if status.st_nlink > 1 else None


def _doubts(directory: Path) -> Iterator[Finding]:
    if directory.stat().st_mode & stat.S_IWOTH:
        yield Finding(
            "folder-open-to-others",
            Severity.WARNING,
            f"{directory} is writable by all users: another user can create a file with the name of the job's log",
            "Submit from a directory of your own.",
        )
    logs = directory / "logs"
    if logs.is_symlink():
        words = f"logs is a symlink: the log goes to {os.path.realpath(logs)}"
        yield Finding("logs-is-a-link", Severity.INFO, words)
