"""Bounds that no metadata declares: the newest version of what fails that imports over a base, found by bisection.

`python -m benchmarks.importable --bisect` writes them to toolkit/pins/undeclared.toml. Entries that are there stay, and
hold for the locks made here; empty the file first to have all of them measured again.
"""

from __future__ import annotations

import datetime
import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

import toolkit.pins
from benchmarks.installed_bases import BASES, say
from benchmarks.releases import Release, day_of, next_series, releases, short
from benchmarks.trial import Bench
from toolkit.pins.uv import open_uv
from toolkit.support.errors import CtkError
from toolkit.support.files import write_atomically
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.importing import Failure
    from toolkit.pins.target import Target

_FILE = Path(toolkit.pins.__file__).with_name("undeclared.toml")
_WRITING = Lock()
_ROUNDS = 4  # how many packages may have to be held back for one to import
_YEARS_BEFORE = 2  # releases older than that before the base are not tried
_NEEDS = re.compile(r"(?:>=\s*v?|version )?(\d+(?:\.\d+)+)(?: or (?:newer|higher|later|above))|>=\s*v?(\d+(?:\.\d+)+)")

_HEAD = """\
# Bounds that packages need and do not declare, found by importing what ctk locked. `ctk lock` applies those of which
# every `when` holds of the base.
#
# Written by `python -m benchmarks.importable --bisect` on {date}. Inputs: the packages of benchmarks/popular.toml and
# benchmarks/importable.toml, over the bases of benchmarks/installed_bases.py, with the releases of that day. Entries
# that are there stay; empty the file to have all of them measured again.
"""


@dataclass(frozen=True, order=True)
class Bound:
    """One entry of the file."""

    package: str
    versions: str
    when: tuple[str, ...]
    why: str
    source: str
    date: str

    def toml(self) -> str:
        """The entry as text: JSON's texts are TOML's."""
        fields = ((key, list(value) if isinstance(value, tuple) else value) for key, value in asdict(self).items())
        return "\n".join(["[[bound]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields)])


def write_undeclared(cache: Path, name: str, packages: Sequence[str], jobs: int = 1) -> None:
    """Bisect what is locked over a base and does not import; the file is written after each package."""
    bench = Bench(open_uv(cache), BASES[name], cache)

    def one(package: str) -> None:
        row = bench.row(package)
        if row.locked and not row.imports:
            found = search(bench, package, [one for one in read_bounds() if holds(one.when, bench.target)])
            with _WRITING:
                write_bounds([*read_bounds(), *found])

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, packages))


def read_bounds() -> list[Bound]:
    """The entries of the file."""
    if not _FILE.is_file():
        return []
    return [Bound(**{**one, "when": tuple(one["when"])}) for one in read_toml(_FILE).content.get("bound", [])]


def write_bounds(bounds: Iterable[Bound]) -> None:
    """Write the file; of two entries for one package and one cause, the stricter one stays."""
    chosen: dict[tuple[str, tuple[str, ...]], Bound] = {}
    for one in sorted(set(bounds)):
        key = (one.package, one.when)
        other = chosen.get(key)
        if other is None or Version(one.versions.lstrip("<=")) < Version(other.versions.lstrip("<=")):
            chosen[key] = one
    head = _HEAD.format(date=datetime.date.today().isoformat())
    write_atomically(_FILE, "\n".join([head, *(f"{one.toml()}\n" for one in chosen.values())]))


def holds(when: Iterable[str], target: Target) -> bool:
    """Whether all conditions hold of what a base has installed."""
    for line in when:
        name, specifier = re.fullmatch(r"([A-Za-z0-9._-]+)(.*)", line).groups()  # type: ignore[union-attr]
        there = target.installed.get(name)
        if there is None or not SpecifierSet(specifier).contains(there.version, prereleases=True):
            return False
    return True


def search(bench: Bench, package: str, known: list[Bound]) -> list[Bound]:
    """The bounds with which a package imports, beyond those `known`; [] where none were found, or none are needed."""
    found: list[Bound] = []
    for _ in range(_ROUNDS):
        result = _try(bench, package, [*known, *found])
        if result is None or isinstance(result, str):
            say(f"{bench.base.name}: {package}: {result or 'imports'} with {[one.versions for one in found]}")
            return found
        failure, added = result
        bound = _hold_back(bench, package, [*known, *found], failure, added)
        if bound is None:
            say(f"{bench.base.name}: {package}: no version imports: {failure.error}")
            return found
        say(f"{bench.base.name}: {package}: {bound}")
        found.append(bound)
    return found


def _try(
    bench: Bench, package: str, bounds: Iterable[Bound], *more: str
) -> tuple[Failure, dict[str, str]] | str | None:
    """None where the lock imports; why there is no lock; or the failure, with what was added."""
    lines = sorted({f"{one.package}{one.versions}" for one in bounds if one.package == package})
    try:
        lock = bench.lock(package, *lines, *more)
        added = {one.name: one.version for one in lock.packages}
        held = [f"{one.package}{one.versions}" for one in bounds if one.package in added]
        if set(held) - set(lines):
            lock = bench.lock(package, *lines, *held, *more)
            added = {one.name: one.version for one in lock.packages}
    except CtkError as error:
        return f"refused: {' '.join(error.message.split())[-200:]}"
    failure = bench.failure_of(lock, package)
    return None if failure is None else (failure, added)


def _hold_back(
    bench: Bench, package: str, bounds: list[Bound], failure: Failure, added: dict[str, str]
) -> Bound | None:
    """The bound that removes a failure: on what failed first, or on what its message names, or on the package."""
    ours = [name for name in failure.owners if name in added]
    named = [name for name in added if _names(failure.error, name)]
    for suspect in dict.fromkeys([*ours[:1], *named, *ours[1:], package]):
        if suspect not in added:
            continue
        first = _first_failing(bench, package, bounds, failure, suspect, Version(added[suspect]))
        if first is not None:
            return _bound(bench, failure, suspect, first)
    return None


def _first_failing(
    bench: Bench, package: str, bounds: list[Bound], failure: Failure, suspect: str, chosen: Version
) -> Version | None:
    """The oldest version of the suspect that fails, with one before it that does not; None where all do."""
    begin = f"{int(bench.base.date[:4]) - _YEARS_BEFORE}{bench.base.date[4:]}"
    known: list[Release] = [one for one in releases(suspect) if one.version <= chosen and one.day >= begin]
    low, high = -1, len(known) - 1  # known[high] fails; known[low] does not, once low is not -1
    works = False
    while high - low > 1:
        middle = (low + high) // 2
        result = _try(bench, package, bounds, f"{suspect}<={known[middle].version}")
        say(f"{bench.base.name}: {package} with {suspect}<={known[middle].version}: {_short(result)}")
        if isinstance(result, str):
            low = middle  # nothing older is on offer at all
        elif result is None or not _same(result[0], failure, suspect):
            low, works = middle, True
        else:
            high = middle
    return known[high].version if works else None


def _same(one: Failure, other: Failure, suspect: str) -> bool:
    """Whether it is still the suspect that fails, and not, after it, something else."""
    return one.error == other.error or suspect in one.owners[:1] or not one.owners


def _bound(bench: Bench, failure: Failure, suspect: str, first: Version) -> Bound:
    cause = _cause(bench, failure, suspect)
    there = Version(bench.target.installed[cause].version)
    return Bound(
        package=suspect,
        versions=f"<{short(first)}",
        when=(_when(failure, cause, there, day_of(suspect, first)),),
        why=f"{suspect} {short(first)} and newer do not work with {cause} {there.public}: {failure.error}",
        source=f"imported over {bench.base.title} ({cause} {there.public})",
        date=datetime.date.today().isoformat(),
    )


def _when(failure: Failure, cause: str, there: Version, day: str) -> str:
    """Of which versions of the cause it is true: what the message says, else the series that was measured.

    What is older than the cause fails with the newer series as well, what is newer with the older ones.
    """
    if day and day < day_of(cause, there):
        return f"{cause}>={short(Version('.'.join(map(str, there.release[:2]))))}"
    said = next((Version(one or other) for one, other in _NEEDS.findall(failure.error)), None)
    if said is not None and said > there and said.major <= there.major + 1:
        return f"{cause}<{short(said)}"
    return f"{cause}<{next_series(cause, there) or f'={there.public}'}"


def _cause(bench: Bench, failure: Failure, suspect: str) -> str:
    """What of the base is at odds with the suspect: what the messages name, a framework's parts first."""
    protected = [pin.name for pin in bench.protected.pins] + [bound.name for bound in bench.protected.bounds]
    text = " ".join([failure.error, *failure.texts])
    for name in [*protected, *bench.target.installed]:
        if name != suspect and name in bench.target.installed and _names(text, name):
            return name
    return next(module for module in bench.base.modules)


def _names(text: str, distribution: str) -> bool:
    """Whether a message speaks of a distribution or its module."""
    pattern = re.escape(distribution).replace(r"\-", "[-_ ]")
    return re.search(rf"(?<![A-Za-z0-9_-]){pattern}(?![A-Za-z0-9_-])", text, re.IGNORECASE) is not None


def _short(result: tuple[Failure, dict[str, str]] | str | None) -> str:
    return "imports" if result is None else result if isinstance(result, str) else result[0].error
