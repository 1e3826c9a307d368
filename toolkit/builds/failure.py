"""Why a build or a trial failed, from the runtime's output, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.causes import find_cause, telling_lines
from toolkit.builds.imports import imports_failed
from toolkit.builds.own_check import check_error
from toolkit.builds.progress import failed_command, failed_output, last_commands, runtime_reason
from toolkit.builds.pulling import registry_of
from toolkit.builds.room import RoomWatch, cause
from toolkit.pins.guard.log import differences, failed_check, failures
from toolkit.pins.guard.payload.log_lines import BY_APT
from toolkit.runtime.known_errors import FULL_DISK
from toolkit.runtime.layer_check import not_mounted
from toolkit.support.errors import CheckFailed, CtkError, ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.causes import Cause
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Base, Recipe
    from toolkit.support.paths import WorkArea

_NOT_PULLED = "conveyor failed to get"  # Apptainer and SingularityCE, before %post


@dataclass(frozen=True, slots=True)
class Attempt:
    """The action in progress: `what` begins the message (`building demo`).

    `start` is the base with the digest by which the runtime pulls it; None if there is no such step.
    """

    what: str
    recipe: Recipe | None
    lock: Lock | None
    log: Path
    area: WorkArea
    start: Base | None = None


def explain_failure(attempt: Attempt, status: int, lines: list[str], room: RoomWatch) -> CtkError:
    """The error for a runtime that ended with `status`, out of the last `lines` of its output."""
    if (unmounted := not_mounted(lines)) is not None:
        return unmounted
    if failed := failures(lines):
        return imports_failed(attempt.what, attempt.recipe, attempt.lock, failed, attempt.log, attempt.area)
    if (check := failed_check(lines)) is not None:
        return check_error(attempt.what, attempt.recipe, check, attempt.log)
    if changed := differences(lines):
        by_apt = all(f"({BY_APT}: " in difference for difference in changed)
        remove = "Remove the Debian package that brings it from `apt` in the recipe"
        request = "Request versions that fit the base (`ctk why PACKAGE`)"
        return CheckFailed(
            f"{attempt.what} would change packages that the base protects: {'; '.join(changed)}",
            fix=f"{remove if by_apt else request}, or choose another base (`ctk bases`). Full log: {attempt.log}",
            code="guard-difference",
        )
    known = cause(lines, room)
    disk_full = known is not None and known.pattern == FULL_DISK.pattern
    printed = failed_output(lines)
    command = failed_command(lines)
    found = None if disk_full or command is None else find_cause(printed)
    message = f"{attempt.what} failed (status {status})"
    not_pulled = attempt.start is not None and any(_NOT_PULLED in line for line in lines)
    if attempt.start is not None and not_pulled:
        message += f": the base {attempt.start.pinned_reference} could not be pulled"
    if found is not None:
        message += f": {found.message}"
    elif known is not None:
        message += f": {known.meaning}"
    elif command is not None and not command.startswith("PYTHONNOUSERSITE=1 "):  # that is ctk's own
        message += f", in the %post command: {command}"
    elif reason := runtime_reason(lines):
        message += f": {reason}"
    fix = _remedy(attempt, found) if found else known.fix_for(registry_of(attempt.start)) if known else None
    code = "disk-full" if disk_full else "base-not-brought" if not_pulled else "build-failed"
    return ProgramFailed(
        message,
        fix=fix,
        code=found.code if found is not None and not not_pulled else code,
        last_lines=telling_lines(printed) or last_commands(lines),
        log=attempt.log,
    )


def _remedy(attempt: Attempt, found: Cause) -> str | None:
    if not found.apt:
        if attempt.recipe is None and found.fix:  # only a recipe has a list of them
            return found.fix.replace("`apt` in the recipe", "the command in %post")
        return found.fix
    if attempt.recipe is None:
        return f"Install it in %post: apt-get install -y {' '.join(found.apt)}"
    return f"On Debian and Ubuntu: ctk add --apt {attempt.recipe.name} {' '.join(found.apt)}"
