"""The variables that an image sets: what Apptainer wrote from Docker's configuration and from `%environment`.

Nothing is run: assignments are read line by line, which is how both kinds of file are written in practice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.inventory.rootfs import Rootfs

_FOLDER = "/.singularity.d/env"
# The runtime's own scripts; what they set depends on the host (99-base.sh appends /.singularity.d/libs).
_RUNTIME = re.compile(r"^(01-base|94-appsbase|95-apps|99-.*)\.sh$")
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # Apptainer's, where an image sets none
_LONGEST_VALUE = 1 << 16
_LIMIT = 1 << 20


def read_environment(rootfs: Rootfs) -> dict[str, str]:
    """The image's variables after all its scripts, references to one another resolved; PATH is always there."""
    variables = {"PATH": _DEFAULT_PATH}
    for name in rootfs.names(_FOLDER):
        if name.endswith(".sh") and not _RUNTIME.match(name):
            apply_script(rootfs.read_text(f"{_FOLDER}/{name}", _LIMIT) or "", variables)
    return variables


def apply_script(script: str, variables: dict[str, str]) -> None:
    """Carry out the assignments of a script on `variables`."""
    for line in script.splitlines():
        match = _ASSIGNMENT.match(line)
        if match:
            name, value = match.groups()
            variables[name] = _value(value.strip(), variables)


def _value(text: str, variables: dict[str, str]) -> str:
    """The value of the right-hand side of an assignment, without its quotes and what follows it on the line."""
    if text.startswith("'"):
        return text[1:].partition("'")[0]
    # Apptainer writes NAME="${NAME:-"value"}": quotes within quotes, which the shell takes for nothing.
    text = re.split(r"\s*;\s*export\b|\s+#", text)[0].replace('\\"', "\0").replace('"', "").replace("\0", '"')

    def replaced(match: re.Match[str]) -> str:
        name, default, short = match.groups()
        return variables.get(name or short) or default or ""

    return _REFERENCE.sub(replaced, text)[:_LONGEST_VALUE]
