"""The command that runs in a container: words of an argument list, or one line for the image's shell."""

from __future__ import annotations

import re
import shlex

from toolkit.support.errors import WrongInput
from toolkit.support.processes import command_line

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# What a job's environment holds is written in capitals. A shell that is the command itself expands it.
_VARIABLE = re.compile(r"\$(?:[A-Z_][A-Z0-9_]*|\{[A-Z_][A-Z0-9_]*)")
STDBUF = ("stdbuf", "-oL")
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")


def shell_command(line: str) -> tuple[str, ...]:
    """The argument list that has the image's shell read `line` as it is. Raises WrongInput if it is empty."""
    if not line.strip():
        raise WrongInput("--shell has no command line", fix="For example: --shell 'cd src && python train.py'")
    return ("sh", "-c", line)


def chosen_command(words: tuple[str, ...], line: str | None) -> tuple[str, ...]:
    """The command of a command line that has `words` or `--shell LINE`. Raises WrongInput if it has both."""
    if line is None:
        return words
    if words:
        raise WrongInput(
            f"--shell and a command are both given: {line!r} and {command_line(words)!r}", fix="Use only one of them."
        )
    return shell_command(line)


def check_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return `words`; raise WrongInput if they cannot be a command."""
    if not words or not words[0].strip():
        raise WrongInput("there is no command to run", fix="Give it after --, for example: -- python train.py")
    if any("\0" in word for word in words):
        raise WrongInput("a command cannot contain a NUL character")
    if _ASSIGNMENT.match(words[0]):
        raise WrongInput(
            f"the command begins with an assignment of {words[0].partition('=')[0]}, which only a shell understands",
            fix="Begin with a program: env NAME=VALUE python train.py; `ctk sbatch` has the option --env as well.",
        )
    if len(words) == 1 and words[0].split() != list(words):
        line = words[0]
        raise WrongInput(
            f"the command is one word with spaces, {line!r}; there is no such program",
            fix=f"{_separate_words(line)}Or pass the line to a shell: {command_line(['--shell', line])}",
        )
    return words


def _separate_words(line: str) -> str:
    try:
        return f"Give its words separately: {command_line(shlex.split(line))}\n"
    except ValueError:  # a quotation mark without its partner
        return ""


def line_buffered(words: tuple[str, ...]) -> tuple[str, ...]:
    """`words` behind stdbuf, with which a C program writes each line at once (coreutils; LD_PRELOAD)."""
    return (*STDBUF, *words)


def as_line(words: tuple[str, ...]) -> str:
    """`words` as a line for `--shell`, in which a shell expands their variables."""
    return " ".join(f'"{word}"' if _VARIABLE.search(word) else shlex.quote(word) for word in words)


def unexpanded_variable(words: tuple[str, ...]) -> str | None:
    """The first `$VARIABLE` that reaches the program as these characters, since no shell expands it."""
    if any(word.rpartition("/")[2] in _SHELLS for word in words[:2]):
        return None
    return next((match[0] + "}" * ("{" in match[0]) for word in words if (match := _VARIABLE.search(word))), None)
