"""The variables of a job's container: written in the script, inherited by the job, or read from a private file."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput
from toolkit.support.processes import command_line
from toolkit.support.secret_words import describe, find_secret, holds_secret
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from pathlib import Path

    from toolkit.jobs.model import Directive

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$(?:[A-Z_][A-Z0-9_]*|\{[A-Z_][A-Z0-9_]*\})")  # what begins with `$` may be a password
# The container has its own values of these, and the runtime lets none of the host's replace them.
_OF_THE_CONTAINER = ("PATH", "LD_LIBRARY_PATH", "HOME", "PS1", "PYTHONNOUSERSITE")


def parse_environment(text: str, not_secret: Container[str] = ()) -> tuple[str, str | None]:
    """`NAME=VALUE`, or `NAME` for the value that the job's environment has (None). A value may hold any text of a line.

    A value that must stay secret is refused: all users can read the script and the command lines on a node. What is
    called as in `not_secret` is none.
    """
    name, equals, value = text.partition("=")
    if not _NAME.fullmatch(name):
        raise WrongInput(
            f"--env should be NAME=VALUE or NAME, not {text!r}", fix="For example: --env TF_CPP_MIN_LOG_LEVEL=2"
        )
    if not equals:
        if name in _OF_THE_CONTAINER:
            raise WrongInput(
                f"--env {name}: the container sets this variable itself", fix=f"Give the value: --env {name}=VALUE"
            )
        return name, None
    if name not in not_secret and holds_secret(name, value):
        raise WrongInput(
            f"--env {text}: nothing replaces {value} in a value of --env, and the job would get it as it stands"
            if _REFERENCE.fullmatch(value)
            else f"--env {name}=… would write a secret to the job script and a command line, which others can read",
            fix=f"To take it from the job's environment: export {name} before you submit the job, then --env {name}\n"
            f"To read it from a private file (mode 0600, with a line {name}=…): --env-file FILE\n"
            f"If it is no secret: --not-secret {name}",
            code="secret-in-script",
        )
    return name, one_line(value, f"--env {name}")


def refuse_secrets(what: str, words: Sequence[str], not_secret: Container[str] = ()) -> None:
    """Raise WrongInput if one of `words`, of which a job script is written, has a secret. `what` they are: the command.

    What `not_secret` has is none.
    """
    found = find_secret(words, not_secret)
    if found is not None:
        raise WrongInput(
            f"{what} has a secret ({describe(found)}), which other users could read in the job script and on a command "
            "line",
            fix="Let the program read it from a variable of its environment. To take that from the job's environment: "
            "--env NAME\nTo read it from a private file (mode 0600, with a line NAME=…): --env-file FILE\n"
            f"If it is no secret: --not-secret {command_line([found])}",
            code="secret-in-script",
        )


def refuse_unexported(names: Iterable[str], directives: Iterable[Directive]) -> None:
    """Raise WrongInput if an `--export` of the script itself keeps a variable of `--env NAME` from the job."""
    for directive in directives:
        exported = [part.partition("=")[0] for part in (directive.value or "").split(",")]
        if directive.name != "export" or "ALL" in exported:
            continue
        missing = next((name for name in names if name not in exported), None)
        if missing is not None:
            raise WrongInput(
                f"--env {missing} takes the value from the job's environment, but --export={directive.value} omits it",
                fix=f"Use --env-file FILE, or --directive=--export=ALL,{missing}",
            )


def check_env_file(path: Path) -> Path:
    """Return `path`, a file of lines NAME=VALUE that nobody but its owner can read. Raises WrongInput otherwise."""
    example = f"For example: (umask 077; cat > {command_line([str(path)])}), then a line such as WANDB_API_KEY=…"
    one_line(str(path), "--env-file")
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise WrongInput(f"--env-file {path} is not a regular file", fix=example)
        if status.st_uid != os.geteuid():
            raise WrongInput(f"--env-file {path} belongs to another user", fix="Use a file of your own.")
        if status.st_mode & 0o077:
            raise WrongInput(
                f"--env-file {path} can be read or written by other users (mode {stat.S_IMODE(status.st_mode):04o})",
                fix=command_line(["chmod", "600", str(path)]),
                code="secret-readable",
            )
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError as error:
        raise WrongInput(f"there is no file {path} (--env-file)", fix=example) from error
    except OSError as error:
        raise WrongInput(f"cannot read --env-file {path}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        name, equals, _ = line.decode("utf-8", errors="replace").partition("=")
        if line.strip() and not line.startswith(b"#") and not (equals and _NAME.fullmatch(name)):
            # The line itself is not shown: it may hold a secret.
            raise WrongInput(f"{path}:{number}: a line should be NAME=VALUE, without quotes and `export`")
    return path
