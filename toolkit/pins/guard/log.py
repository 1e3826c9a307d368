"""What the log of a build says about the guard: differences of the base, and the results of the import step."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING

from toolkit.pins.guard.payload import log_lines
from toolkit.pins.guard.script import LAYER_BEGINS
from toolkit.pins.guard.traced import read_trace
from toolkit.pins.guard.trials import FailedCheck, Imported, ImportFailure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.pins.guard.traced import ImportTrace

# Messages of pip 9 to 26.
_CONFLICT = "The conflict is caused by:"
_ASKED, _HELD = "The user requested ", "The user requested (constraint) "
_LEGACY = "Could not satisfy constraints for "
_FIELD = re.compile(r"\\{(\w+)\\}")


def is_own(line: str) -> bool:
    """Whether the guard printed `line`."""
    return line.startswith(log_lines.PREFIX)


def is_end(line: str) -> bool:
    """Whether the shell traces in `line` the end of `%post`: what comes after it is the guard's summary."""
    return line.startswith(f"+ {log_lines.END} ")


def is_begin_of_layer(line: str) -> bool:
    """Whether the script of a layer begins with `line`: each of a layered build runs in a shell of its own."""
    return line.startswith(f"{LAYER_BEGINS} ")


def fields(text: str, line: str) -> dict[str, str] | None:
    """The values of the fields of `text`, one of the payload's lines, in a line of a log. None for another line."""
    match = _pattern(text).fullmatch(line.strip())
    return match.groupdict() if match else None


def differences(log: Sequence[str]) -> tuple[str, ...]:
    """What a build would have changed in the base, from its log: what the guard found, else why pip stopped.

    Where there is anything, the build's answer is "no" (exit status 1), and not the failure of a program.
    """
    found = [
        *(values["difference"] for values in _all(log_lines.DIFFERENCE, log)),
        *(values["difference"] for values in _all(log_lines.CONTRADICTION, log)),
    ]
    return tuple(found) or _stopped_by_constraint(log)


def failures(log: Iterable[str]) -> tuple[ImportFailure, ...]:
    """The imports that failed."""
    return tuple(ImportFailure(**values) for values in _all(log_lines.IMPORT_FAILED, log))


def failed_check(log: Sequence[str]) -> FailedCheck | None:
    """The recipe's own check, if it failed."""
    begins = 0
    for number, line in enumerate(log):
        if fields(log_lines.CHECKING, line) is not None:
            begins = number + 1
        if (values := fields(log_lines.CHECK_FAILED, line)) is not None:
            command = values["command"]
            with contextlib.suppress(ValueError):
                command = json.dumps(json.loads(command), ensure_ascii=False)
            return FailedCheck(command, values["how"], tuple(text.removeprefix("  | ") for text in log[begins:number]))
    return None


def checked_in(line: str) -> float | None:
    """How many seconds the recipe's own check took, if this is the line that says so; else None."""
    values = fields(log_lines.CHECKED, line)
    with contextlib.suppress(ValueError):
        return float(values["seconds"]) if values is not None else None
    return None


def successes(log: Iterable[str]) -> tuple[Imported, ...]:
    """The imports that succeeded."""
    return tuple(
        Imported(values["package"], values["version"], float(values["seconds"]), tuple(values["steps"].split(", ")))
        for values in _all(log_lines.IMPORTED, log)
    )


@dataclass(frozen=True, slots=True)
class Traced:
    """What the import of a package looked for, and how many seconds it took."""

    package: str
    seconds: float
    trace: ImportTrace


def traced_in(line: str) -> Traced | None:
    """What a line says of an import that was recorded; None for another line."""
    values = fields(log_lines.TRACED, line)
    trace = read_trace(values["trace"]) if values is not None else None
    with contextlib.suppress(ValueError):
        if values is not None and trace is not None:
            return Traced(values["package"], float(values["seconds"]), trace)
    return None


def searched_in(line: str) -> tuple[str, ...] | None:
    """The site directories that the image's Python searches, if this is the line that says so; else None."""
    values = fields(log_lines.SEARCHED, line)
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(values["directories"]) if values is not None else None
        if isinstance(found, list) and all(isinstance(path, str) for path in found):
            return tuple(found)
    return None


def imported_before(package: str, seconds: float) -> str:
    """The line for a package that needs no import."""
    when = f"{package} was imported in {seconds:.1f} s by an earlier build"
    return f"{log_lines.PREFIX}{when}: nothing that this reads has changed since"


def checked_before(seconds: float) -> str:
    """The line for a check that needs not run."""
    return f"{log_lines.PREFIX}the check passed in {seconds:.1f} s in an earlier build of the same layers"


def seconds_of_imports(log: Iterable[str]) -> float | None:
    """How long the import step took; None if there was none."""
    return next((float(values["seconds"]) for values in _all(log_lines.IMPORTS_TOOK, log)), None)


def _all(text: str, log: Iterable[str]) -> Iterator[dict[str, str]]:
    return (values for line in log if (values := fields(text, line)) is not None)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(_FIELD.sub(r"(?P<\1>.+?)", re.escape(log_lines.PREFIX + text)))


def _stopped_by_constraint(log: Sequence[str]) -> tuple[str, ...]:
    """The requirements of the last pip command that conflict with the guard's constraint file."""
    first = max((number for number, line in enumerate(log) if is_begin_of_layer(line)), default=0)
    own = list(takewhile(lambda line: not is_end(line), log[first:]))
    begins = max((number for number, line in enumerate(own) if line.startswith("+ ")), default=0)
    said = [line.strip() for line in own[begins:]]
    if _CONFLICT in said:
        listed = list(takewhile(bool, said[said.index(_CONFLICT) + 1 :]))
        held = [line.removeprefix(_HELD) for line in listed if line.startswith(_HELD)]
        asked = [line.removeprefix(_ASKED) for line in listed if not line.startswith(_HELD)]
        return (f"{' and '.join(held)} must not change; conflicts with: {', '.join(asked)}",) if held else ()
    return tuple(line.removeprefix("ERROR: ") for line in said if _LEGACY in line)
