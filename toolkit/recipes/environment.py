"""What a value of `[environment]` may refer to: the image's own list of directories, and nothing else.

A value is not run by a shell, so that `$NAME` in it would stay as it is, and a PATH of that kind finds no program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# The runtime does not take these two from the host (seen with Apptainer 1.4.5): they are the image's.
EXTENDABLE = ("PATH", "LD_LIBRARY_PATH")
_SYSTEM = ("/usr/bin", "/bin")
_REFERENCE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][^}]*\}?)")


@dataclass(frozen=True, slots=True)
class Extended:
    """A list of directories that has the image's own value between `before` and `after`; either may be empty."""

    before: str
    after: str


def extended(name: str, value: str) -> Extended | None:
    """The parts of a value such as `/opt/bin:$PATH`; None if it does not extend the image's own value."""
    if name not in EXTENDABLE:
        return None
    match = re.fullmatch(rf"(?:(?P<before>[^$`]+):)?\$(?:{name}|\{{{name}\}})(?::(?P<after>[^$`]+))?", value)
    return Extended(match["before"] or "", match["after"] or "") if match else None


def problem(name: str, value: str) -> tuple[str, str] | None:
    """The error in a variable's value, and the fix; None if it is valid."""
    if extended(name, value) is not None:
        return None
    if found := _REFERENCE.search(value):
        own = f' To extend the image\'s own value, write {name} = "/DIRECTORY:${name}".' if name in EXTENDABLE else ""
        return (
            f"contains {found[0]}, which no shell expands: the image would contain it literally",
            f"Write the value in full.{own}",
        )
    missing = [directory for directory in _SYSTEM if directory not in [part.rstrip("/") for part in value.split(":")]]
    if name == "PATH" and missing:
        return (
            f"lacks {' and '.join(missing)}: the image's programs would not be found",
            'Extend the PATH of the image: PATH = "/DIRECTORY:$PATH".',
        )
    return None
