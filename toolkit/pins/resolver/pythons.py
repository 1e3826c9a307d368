"""Releases that forbid the Python of a base.

uv 0.13 ignores an upper bound in Requires-Python: it chooses numpy 1.21.6 (`<3.11`) for Python 3.11, which pip refuses
to install. So the files that uv chose are looked up on their index, and what they forbid becomes a constraint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from toolkit.pins.resolver.constraints import Constraint
from toolkit.pins.resolver.releases import kept_row, list_files, takes_python
from toolkit.pins.resolver.resolve import first_question
from toolkit.support.parallel import parallel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolkit.pins.index.wheels import File
    from toolkit.pins.resolver.question import Question
    from toolkit.pins.resolver.resolve import Request, Resolution

_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class PythonBound(Constraint):
    """Excludes one release, which is for other Pythons: `requires` is its Requires-Python."""

    requires: str = ""


def python_bounds(request: Request, resolution: Resolution, directory: Path) -> list[Constraint]:
    """What excludes the releases that forbid the request's Python, of each package of which such a one was chosen.

    `directory` keeps the pages of the index.
    """
    question = first_question(request)
    names = [
        package.name
        for package in resolution.packages
        if not package.url
        and (file := resolution.files.get(package.name))
        and not _is_for_one_python(file)
        and not _allows(file, package.name, question, directory)
    ]
    chosen = {package.name: Version(package.version) for package in resolution.packages if package.name in names}
    found = parallel(lambda name: forbidding_releases(name, question, directory), names, _AT_ONCE)
    return [
        bound
        for name, releases in zip(names, found, strict=True)
        if chosen[name] in releases
        for bound in _excluding(name, releases, question)
    ]


def forbidding_releases(name: str, question: Question, directory: Path) -> dict[Version, str]:
    """The releases of which no file is for the question's Python, each with its Requires-Python."""
    python = question.target.environment()["python_full_version"]
    return {
        version: str(rows[0]["requires-python"])
        for version, rows in list_files(name, question, directory).items()
        if not any(takes_python(row, python) for row in rows)
    }


def forbids(requires: str, python: str) -> str:
    """That a release is for other Pythons, as the second half of a sentence."""
    return f"requires Python {requires}; the base has Python {python}"


def _excluding(name: str, releases: dict[Version, str], question: Question) -> Iterable[PythonBound]:
    for version, requires in releases.items():
        by = f"{name} {version} {forbids(requires, question.target.python)}"
        yield PythonBound(name, f"!={version}", by, requires)


def _allows(file: File, name: str, question: Question, directory: Path) -> bool:
    """Whether a page that was kept says that a file is for the question's Python: that never changes."""
    row = kept_row(name, file, question, directory)
    return row is not None and takes_python(row, question.target.environment()["python_full_version"])


def _is_for_one_python(file: File) -> bool:
    """Whether a wheel was compiled for one Python only: its tag says so, and Requires-Python adds nothing."""
    try:
        tags = parse_wheel_filename(file.name)[3] if file.is_wheel else ()
    except InvalidWheelFilename:
        return False
    return bool(tags) and all(tag.abi not in ("none", "abi3") for tag in tags)
