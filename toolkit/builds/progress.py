"""What a build's output means: which step is under way, and after a failure which command it was."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# What the runtime prints at the beginning of a step, and how ctk calls it.
_STEPS = (
    (r"ctk guard: running ", "installing exactly the locked packages"),
    (r"ctk: (.+)", r"\1"),
    (r"INFO:\s+Starting build", "starting"),
    (r"INFO:\s+(?:Extracting OCI|Fetching OCI|Extracting local) image", "getting the base"),
    (r"(?:Getting image source signatures|Copying blob)", "getting the base from the registry"),
    (r"I: Retrieving InRelease|I: Retrieving Packages", "making the base from the Debian archive"),
    (r"I: Unpacking the base system", "unpacking the base"),
    (r"I: Configuring (?:the base system|required packages)", "configuring the base"),
    (r"INFO:\s+Copying \S+ to", "copying files"),
    (r"INFO:\s+Running post scriptlet", "running %post"),
    (r"INFO:\s+Creating SIF file", "compressing the image"),
    (r"INFO:\s+Creating sandbox directory", "writing the sandbox"),
    (r"INFO:\s+Build complete", "finishing"),
)
# What the runtime prints where %post begins, and where something else does that may print commands or fail.
_SECTION = re.compile(r"INFO:\s+(?:(?P<post>Running post)|Running (?:setup|test)|Adding |Creating )")


def step_of(line: str) -> str | None:
    """The step that a line of the build's output begins, or None."""
    for pattern, words in _STEPS:
        match = re.match(pattern, line)
        if match:
            return match.expand(words)
    return None


def failed_command(lines: Sequence[str]) -> str | None:
    """The command of `%post` with which a build failed: the runtime runs it with `sh -ex`, which prints `+ command`.

    `lines` are the last ones of the output. None where something else failed: getting the base, `%test`, packing.
    """
    in_post = True
    commands: list[str] = []
    for line in lines:
        if section := _SECTION.match(line):
            in_post, commands = section["post"] is not None, []
        elif in_post and line.startswith("+ "):
            commands.append(line[2:].strip())
    # After a failure the guard has its say; what failed stands before it.
    end = next((number for number, command in enumerate(commands) if command.startswith("ctk_guard_end ")), None)
    return next(reversed(commands[:end]), None)


def last_complaint(lines: Sequence[str]) -> str | None:
    """The reason that the runtime itself gave at the end (`FATAL: …`)."""
    found = (re.match(r"FATAL:\s+(?:While performing build: )?(.+)", line) for line in reversed(lines))
    return next((match[1] for match in found if match), None)
