"""Parse a build's output: the current step and, after a failure, the failed command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.pins.guard.log import fields, is_begin_of_layer, is_end
from toolkit.pins.guard.payload.log_lines import CHECKING, IMPORTING, RUNNING

if TYPE_CHECKING:
    from collections.abc import Sequence

STARTING, PACKING = "starting the build", "compressing the image"
# What the runtime prints at the beginning of a step, and ctk's name for it.
_STEPS = (
    (r"ctk: (.+)", r"\1"),
    (r"INFO:\s+Starting build", STARTING),
    (r"INFO:\s+(?:Extracting OCI|Fetching OCI|Extracting local) image", "preparing the base"),
    (r"(?:Getting image source signatures|Copying blob)", "pulling the base from the registry"),
    (r"I: Retrieving InRelease|I: Retrieving Packages", "building the base from the Debian archive"),
    (r"I: Unpacking the base system", "unpacking the base"),
    (r"I: Configuring (?:the base system|required packages)", "configuring the base"),
    (r"INFO:\s+Copying \S+ to", "copying files"),
    (r"INFO:\s+Running post scriptlet", "running %post"),
    (r"INFO:\s+Creating SIF file", PACKING),
    (r"INFO:\s+Creating sandbox directory", "writing the sandbox"),
    (r"INFO:\s+Build complete", "finishing"),
)
_STEPS_OF_GUARD = (
    (RUNNING, "installing exactly the locked packages"),
    (IMPORTING, "importing the packages"),
    (CHECKING, "running the check of the recipe"),
)
_SHOWN_COMMANDS = 8
# What the runtime prints where %post begins, and where something else does that may print commands or fail.
_SECTION = re.compile(r"INFO:\s+(?:(?P<post>Running post)|Running (?:setup|test)|Adding |Creating )")


def step_of(line: str) -> str | None:
    """The step that a line of the build's output begins, or None."""
    for text, words in _STEPS_OF_GUARD:
        if fields(text, line) is not None:
            return words
    for pattern, words in _STEPS:
        match = re.match(pattern, line)
        if match:
            return match.expand(words)
    return None


def failed_command(lines: Sequence[str]) -> str | None:
    """The command of `%post` with which a build failed: the runtime runs it with `sh -ex`, which prints `+ command`.

    `lines` are the last ones of the output. None if something else failed: getting the base, `%test`, packing.
    """
    command, _, _ = _last_of_post(lines)
    return command


def failed_output(lines: Sequence[str]) -> tuple[str, ...]:
    """What the failed command of `%post` printed; all of `lines` where something else failed."""
    command, printed, _ = _last_of_post(lines)
    return tuple(lines) if command is None else tuple(printed)


def last_commands(lines: Sequence[str]) -> tuple[str, ...]:
    """The last lines of `%post`, each command and what it printed: for a failed command that printed nothing."""
    return tuple(_last_of_post(lines)[2][-_SHOWN_COMMANDS:])


def _last_of_post(lines: Sequence[str]) -> tuple[str | None, list[str], list[str]]:
    """The last command of `%post`, what it printed, and all lines of its step; none where another section began after
    it."""
    in_post, command = True, None
    printed: list[str] = []
    whole: list[str] = []
    for line in lines:
        section = _SECTION.match(line)
        if is_begin_of_layer(line) or section:
            in_post, command, printed, whole = section is None or section["post"] is not None, None, [], []
        elif in_post and is_end(line):
            in_post = False  # after a failure the guard prints its own summary
        elif in_post:
            if step_of(line) is not None:  # what is above it is ctk's own
                whole.clear()
            else:
                whole.append(line)
            if line.startswith("+ "):
                command, printed = line[2:].strip(), []
            else:
                printed.append(line)
    return command, printed, whole


def runtime_reason(lines: Sequence[str]) -> str | None:
    """The reason that the runtime itself gave at the end (`FATAL: …`)."""
    found = (re.match(r"FATAL:\s+(?:While performing build: )?(.+)", line) for line in reversed(lines))
    return next((match[1] for match in found if match), None)
