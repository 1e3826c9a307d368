"""The cause of a failed build command: its error lines, the package, and the fix (`causes.toml`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.pins.guard.log import is_own
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILE = Path(__file__).with_name("causes.toml")
_MAX_SHOWN = 12
_MAX_LENGTH = 300  # of a line: a compiler's command line says little
# The package in progress, as pip and uv print it.
_PACKAGE = re.compile(
    r"Failed building wheel for (\S+)|Building wheel for (\S+) .*status 'error'|Failed to build `?([\w.-]+)|"
    r"Running setup.py install for (\S+) did not run|╰─> ([\w.-]+)$"
)
_TELLING = re.compile(
    r"\b(?:error|fatal|failed|cannot|can't|could not|not found|no such file|no matching|unable to|undefined reference|"
    r"not installed|denied|refused)\b|^E: |invalid peer",
    re.IGNORECASE,
)
# Lines that report a failure without its cause: the summaries of pip and the runtime. The guard's are no reason either.
_SUMMARY = re.compile(
    r"finished with status|subprocess-exited-with-error|note: This |hint: See above|"
    r"^FATAL: +While performing|legacy-install-failure|metadata-generation-failed"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a build failed. `apt` are Debian packages that would help, `fix` other advice; `package` was in progress."""

    code: str
    meaning: str
    fix: str | None = None
    apt: tuple[str, ...] = ()
    package: str | None = None

    @property
    def message(self) -> str:
        return f"{self.package}: {self.meaning}" if self.package else self.meaning


@dataclass(frozen=True, slots=True)
class _Known:
    """An entry of `causes.toml`. `helps` are Debian packages by the thing that is missing."""

    code: str
    pattern: re.Pattern[str]
    meaning: str
    fix: str | None
    packages: tuple[str, ...]
    helps: Mapping[str, Sequence[str]] | None
    only_known: bool


def find_cause(lines: Sequence[str]) -> Cause | None:
    """The known cause in `lines`, the output of the failed command; None if there is none."""
    package = _package(lines)
    for known in _known():
        for line in lines:
            match = known.pattern.search(line)
            what = next((group for group in match.groups() if group), "") if match else ""
            if match is None or (known.only_known and what not in (known.helps or {})):
                continue
            apt = (*known.packages, *(known.helps or {}).get(what, ()))
            meaning = known.meaning.replace("{what}", what)
            return Cause(known.code, meaning, known.fix or _fix(known, what, apt), tuple(apt), package)
    return None


def telling_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """The error lines of a failed command, else its last lines: at most a dozen."""
    own = [line.rstrip() for line in lines if line.strip()]
    telling = [line for line in own if _TELLING.search(line) and not (is_own(line) or _SUMMARY.search(line))]
    shown = list(dict.fromkeys(telling)) or own[-_MAX_SHOWN:]
    if len(shown) > _MAX_SHOWN:
        half = _MAX_SHOWN // 2
        shown = [*shown[:half], *shown[-half:]]
    return tuple(map(_shortened, shown))


def _shortened(line: str) -> str:
    """`line` without its middle, if it is long: pip lists the newest versions last."""
    half = _MAX_LENGTH // 2
    return line if len(line) <= _MAX_LENGTH else f"{line[:half]} ... {line[-half:]}"


def _fix(known: _Known, what: str, apt: Sequence[str]) -> str | None:
    if apt or known.helps is None:
        return None
    return f"Find the Debian package that has {what} (https://packages.debian.org), and add it to `apt` in the recipe."


def _package(lines: Sequence[str]) -> str | None:
    """The Python package that was being built or installed when the command failed."""
    found = (match for line in lines if (match := _PACKAGE.search(line)))
    return next(
        (name for match in found for name in match.groups() if name and name not in ("installable", "one")), None
    )


@cache
def _known() -> tuple[_Known, ...]:
    content = read_toml(_FILE).content
    return tuple(
        _Known(
            code=entry["code"],
            pattern=re.compile(entry["pattern"]),
            meaning=entry["meaning"],
            fix=entry.get("fix"),
            packages=tuple(entry.get("packages", ())),
            helps=content[entry["helps"]] if "helps" in entry else None,
            only_known=entry.get("only_known", False),
        )
        for entry in content["cause"]
    )
