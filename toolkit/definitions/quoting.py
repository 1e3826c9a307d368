"""User text inside a definition: quoted so that it stays what it is, or refused."""

from __future__ import annotations

import re
import shlex

from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line


def shell_word(value: str, what: str) -> str:
    """`value` as one word of shell that the definition's own reader leaves alone.

    Apptainer >= 1.2 replaces `{{ name }}` anywhere in a definition, inside quotes too, hence the braces are parted.
    Raises WrongInput where the value holds a newline or another control character.
    """
    quoted = shlex.quote(one_line(value, what))
    return re.sub(r"(?<=\{)\{|(?<=\})\}", r"''\g<0>", quoted)


def header_value(value: str, what: str) -> str:
    """`value` as it may stand after `From:` and the like: one line, no braces for build arguments, no blanks around."""
    if one_line(value, what) != value.strip() or "{{" in value or not value:
        raise WrongInput(f"{what} cannot stand in a definition: {value!r}")
    return value


def script(text: str, what: str) -> str:
    """A person's own shell script as it may stand in `%post`.

    A line that begins with `%` would open a section of the definition, and `{{` a build argument; both are refused,
    since no quoting can be right in every place of a script.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("%"):
            raise WrongInput(
                f"{what}, line {number}, begins with %, which would open a section of the definition: {line.strip()!r}",
                fix="Put the script into a file, copy it with [[files]], and call it.",
            )
        if "{{" in line:
            raise WrongInput(
                f"{what}, line {number}, holds {{{{, which the runtime reads as a build argument: {line.strip()!r}",
                fix="Put the script into a file, copy it with [[files]], and call it.",
            )
        for character in line:
            if ord(character) < 32 and character != "\t":
                raise WrongInput(f"{what}, line {number}, holds the control character {character!r}")
    return text.strip("\n")
