"""The error if the recipe's own check failed at the end of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.support.errors import CheckFailed
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.guard.trials import FailedCheck
    from toolkit.recipes.model import Recipe

CODE = "check-failed"
_MAX_LINES = 8
_MAX_LENGTH = 300  # of a line


def check_error(what: str, recipe: Recipe | None, failed: FailedCheck, log: Path) -> CheckFailed:
    """The error with the last lines of the command. `what` begins the message; a definition has no recipe."""
    printed = [line[:_MAX_LENGTH] for line in failed.printed if line.strip()][-_MAX_LINES:]
    message = f"{what} failed: the check {failed.command} {failed.how}"
    if recipe is None:
        fix = "Correct the check in the recipe that the definition was made from."
    else:
        other = command_line(["ctk", "add", recipe.name, "PACKAGE==VERSION"])
        fix = f"Choose other versions of the packages ({other}), or correct [check] in {recipe.path}."
    return CheckFailed(
        "\n".join([f"{message}:" if printed else f"{message}, and printed nothing", *printed]),
        fix=f"{fix}\nThe build has no GPU: a check cannot need one. Full log: {log}",
        code=CODE,
    )
