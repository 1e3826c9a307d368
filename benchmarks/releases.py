"""What bisection asks of the index: the releases that a base can take, and the day on which each came out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from toolkit.pins.resolver.question import Question
from toolkit.pins.resolver.releases import list_releases

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.bases.target import PythonTarget


class Releases:
    """The releases of distributions that a target can take; pages of the index are kept in `directory`."""

    def __init__(self, target: PythonTarget, directory: Path) -> None:
        self._question = Question(target, ())
        self._directory = directory

    def days(self, name: str) -> dict[Version, str]:
        """The day (`2024-11-15`) of each release, the oldest version first; "" where the index does not tell."""
        found = list_releases(name, self._question, self._directory)
        return {release.version: str(release.file.uploaded or "")[:10] for release in reversed(found)}

    def day(self, name: str, version: Version) -> str:
        """The day of one release; "" where it is not known."""
        return self.days(name).get(Version(version.public), "")

    def next_series(self, name: str, version: Version) -> str | None:
        """The first series after a version's own: `2` after numpy 1.26.4, `2.16` after 2.15.1; None: it is the last."""
        later = [day for day in self.days(name) if day.release[:2] > version.release[:2]]
        return series(min(later)) if later else None


def series(version: Version) -> str:
    """`2.16` of 2.16.1, `2` of 2.0.2."""
    return short(Version(".".join(map(str, version.release[:2]))))


def short(version: Version) -> str:
    """`22` of 22.0.0."""
    parts = list(version.release)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return ".".join(map(str, parts))
