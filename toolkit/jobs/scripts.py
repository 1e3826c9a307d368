"""The script file: written atomically, recognised as ctk's, and a user's own file never overwritten."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.dialects.template import read_template
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.model import Script
from toolkit.support.errors import WrongInput
from toolkit.support.files import open_regular, refuse_link, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.jobs.dialects.dialect import Dialect
    from toolkit.jobs.model import Job

_MARKER = re.compile(
    r"^# Job (?P<name>\S+) for [\w ]+, written by ctk \S+, fingerprint (?P<digest>[0-9a-f]{16})$", re.M
)


def make_script(job: Job, path: Path, dialect: Dialect = SLURM, template: Path | None = None) -> Script:
    """The script of `job`, marked so that ctk knows it again as long as nobody has changed it.

    `template` is a file of the user's. Raises WrongInput if it cannot be used, or if the language of the scheduler
    cannot express the job.
    """
    dialect.check(job)
    own = read_template(template) if template else None
    digest = _fingerprint(script_text(job, dialect, "", own))
    marker = f"Job {job.name} for {dialect.words.title}, written by ctk {__version__}, fingerprint {digest}"
    return Script(job, script_text(job, dialect, marker, own), path, dialect.words.scheduler)


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def untouched_job(text: str) -> str | None:
    """The name of the job whose script ctk wrote as `text`; None if a user wrote it, or changed it since."""
    match = _MARKER.search(text)
    if match is None:
        return None
    without = text[: match.start()] + "# " + text[match.end() :]
    return match["name"] if _fingerprint(without) == match["digest"] else None


def write_script(script: Script, *, force: bool = False) -> None:
    """Write the script. Raises WrongInput if anything but ctk's own of the same job is there, unless `force`.

    A symlink is refused in any case: a script that sbatch is given is no place to lead a user elsewhere.
    """
    check_script_file(script, force=force)
    write_atomically(script.path, script.text)


def check_script_file(script: Script, *, force: bool = False) -> None:
    """Raise WrongInput where write_script would, and write nothing."""
    path = script.path
    refuse_link(path)
    if path.exists() and not path.is_file():  # to read a pipe would wait for its writer for ever
        what = "is a directory" if path.is_dir() else "is neither a file nor a directory"
        raise WrongInput(f"{path} {what}", fix="Name a file: --output FILE.sbatch")
    if path.exists() and not force:
        try:
            with open_regular(path) as file:
                there = untouched_job(file.read().decode("utf-8", errors="replace"))
        except OSError as error:
            raise WrongInput(f"cannot read {path}: {error.strerror}") from error
        if there != script.job.name:
            whose = f"is the script of the job {there}" if there else "was written or changed by hand"
            raise WrongInput(
                f"{path} {whose} and was not replaced",
                fix="--force replaces it; --output FILE.sbatch writes another file; --dry-run only prints.",
            )
