"""The output of `--dry-run`: the steps of a build as a script that does not need ctk."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.builds.files import AreaDirectories, quoted
from toolkit.builds.steps import Workspace, ending, flat_steps, removal
from toolkit.support.processes import command_line
from toolkit.support.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.builds.context import BuildContext
    from toolkit.builds.plan import BuildPlan
    from toolkit.support.errors import CtkError


def build_commands(plan: BuildPlan, context: BuildContext) -> list[str]:
    """The commands of a build, complete. What they make on the way is removed however they end."""
    workspace = Workspace.of_script(plan.request.output, context)
    return [
        "set -eu",
        f"cd -- {quoted(Path.cwd())}",
        "trap 'exit 130' HUP INT TERM",
        AreaDirectories(context.area).shell(),
        _temporary(workspace.beside),
        _temporary(workspace.scratch, workspace.beside),
        *(step.shell() for step in flat_steps(plan, context, workspace)),
    ]


def refused(error: CtkError) -> str:
    """The command with which a script ends where `ctk build` would end with `error`."""
    text = printable("\n".join(filter(None, (error.message, error.fix))), keep="\n")
    return ending(text, error.exit_status)


def as_script(commands: list[str], target: str, check: Sequence[str] = ()) -> str:
    """The commands as one text for `sh`, which reads all of it before it begins; `check` is that of the recipe."""
    body = "\n".join(commands)
    own = f"# At the end the build runs the check of the recipe: {printable(command_line(check))}\n" if check else ""
    return (
        "#!/bin/sh\n"
        f"# Commands of `ctk build` for {printable(target)}, by ctk {__version__}.\n"
        "# The image is flat; `ctk build` may make a layered one with the same content.\n"
        "# This script writes no lock and no log, and does not audit the image.\n"
        f"{own}"
        f"build() {{\n{body}\n}}\nbuild\n"
    )


def _temporary(new: Path, *others: Path) -> str:
    """Make a directory, which must not be there yet, and see to its removal and that of the others."""
    return f"mkdir -m 700 -- {quoted(new)}\ntrap {shlex.quote(removal(new, *others))} EXIT"
