"""User text inside a definition: quoted so that its value does not change, or refused."""

from __future__ import annotations

import re
import shlex

from toolkit.recipes.environment import extended
from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line, part_braces

# How apptainer parses a definition (pkg/build/types/parser/deffile.go, internal/pkg/build/args/reader.go).
_MEANT_FOR_THE_RUNTIME = (
    (re.compile(r"^\s*%"), "begins with %, which would start a section of the definition"),
    (re.compile(r"^bootstrap:", re.IGNORECASE), "begins with bootstrap:, which would start a stage of the definition"),
    (re.compile(r"\{\{"), "contains {{, which the runtime reads as a build argument"),
)
_HARMLESS = re.compile(r"[A-Za-z0-9 /._+,:=@%~^-]")


def shell_word(value: str, what: str) -> str:
    """`value` as one shell word that the definition parser does not change.

    Apptainer >= 1.2 replaces `{{ name }}` anywhere in a definition, inside quotes too, hence the braces are parted.
    Raises WrongInput if the value holds a newline or another control character.
    """
    return part_braces(shlex.quote(one_line(value, what)))


def variable_word(name: str, value: str, what: str) -> str:
    """The value of a variable as a shell word; if it extends the image's own value, the shell inserts that.

    Where the image has none, no empty element is added: it would mean the working directory. Raises as `shell_word`.
    """
    parts = extended(name, value)
    if parts is None:
        return shell_word(value, what)
    before = shell_word(parts.before, what) if parts.before else ""
    after = shell_word(f":{parts.after}" if parts.before else parts.after, what) if parts.after else ""
    if not parts.before:
        own = f'"${{{name}:+${name}:}}"' if after else f'"${{{name}:-}}"'
    else:
        own = f'"${{{name}:+:${name}}}"'
    return f"{before}{own}{after}"


def header_value(value: str, what: str) -> str:
    """`value` for `From:` and other header lines; the header of a definition has no quoting.

    Apptainer cuts a header line at `#`, takes the next one for its continuation after a backslash, and trims blanks
    (pkg/build/types/parser/deffile.go). Raises WrongInput if that, or a build argument, would change the value.
    """
    if one_line(value, what) != value.strip() or not value or "{{" in value or "#" in value or value.endswith("\\"):
        raise WrongInput(f"{what} is not allowed in a definition: {value!r}")
    return value


def file_path(value: str, what: str) -> str:
    """`value` as a path in `%files`: in double quotes where it holds a blank.

    Apptainer expands the path as a shell would (internal/pkg/build/files/files.go), `$`, backquotes and wildcards
    included, and nothing quotes them; so of ASCII only what no shell minds is let through. Raises WrongInput.
    """
    header_value(value, what)
    bad = sorted({character for character in value if character.isascii() and not _HARMLESS.fullmatch(character)})
    if bad:
        raise WrongInput(f"{what} contains {' '.join(bad)}, which %files would interpret: {value!r}")
    return f'"{value}"' if " " in value else value


def script(text: str, what: str) -> str:
    """A user's own shell script for `%post`.

    A line that begins with `%` would open a section of the definition, one that begins with `bootstrap:` a stage, and
    `{{` a build argument; all are refused, since no quoting can be right in every place of a script.
    """
    for number, line in enumerate(text.split("\n"), 1):
        one_line(line.replace("\t", " "), f"{what}, line {number},")
        for pattern, trouble in _MEANT_FOR_THE_RUNTIME:
            if pattern.search(line):
                raise WrongInput(
                    f"{what}, line {number}, {trouble}: {line.strip()!r}",
                    fix="Put the script in a file, copy it with [[files]], and call it.",
                )
    return text.strip("\n")
