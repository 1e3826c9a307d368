"""Bounds that no metadata declares: the newest version of what fails that imports over a base, found by bisection.

`python -m benchmarks.importable --bisect` writes them to toolkit/pins/resolver/undeclared.toml. Entries that are there
stay and hold for the locks made here; empty the file first to have all of them measured again.
"""

from __future__ import annotations

import datetime
import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from packaging.version import Version

import toolkit.pins.resolver
from benchmarks.installed_bases import BASES, say
from benchmarks.releases import series, short
from benchmarks.trial import Bench
from toolkit.inventory.knowledge.names import names
from toolkit.pins.index.uv import open_uv
from toolkit.pins.resolver.undeclared import UndeclaredBound, load_bounds
from toolkit.support.errors import CtkError
from toolkit.support.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.importing import Failure
    from benchmarks.releases import Releases

UNDECLARED = Path(toolkit.pins.resolver.__file__).with_name("undeclared.toml")
_WRITING = Lock()
_ROUNDS = 4  # how many packages may have to be held back for one to import
_DAYS_BEFORE = 730  # releases that came out longer than that before the base are not tried
_DAYS_AFTER = 75  # what is built for a framework comes out that long after the base at the latest
_NEEDS = re.compile(r"(?:>=\s*v?|version )?(\d+(?:\.\d+)+)(?: or (?:newer|higher|later|above))|>=\s*v?(\d+(?:\.\d+)+)")
# What an image lacks besides: the driver's library, other libraries of the system, modules, compilers.
_LACKS = re.compile(r"libcuda\b|cannot open shared object|FFmpeg|No module named|not installed", re.IGNORECASE)

_HEAD = """\
# Bounds that packages do not declare: a release that installs over these bases, and fails when it is imported.
#
# package   what is held back.
# versions  the releases that work (PEP 440).
# when      all of these hold of what the image has besides.
# why       a sentence for the user, without its full stop.
# source    how it was found; date: when.
#
# Written by `python -m benchmarks.importable --bisect` on {date}. Inputs: the packages of benchmarks/popular.toml and
# benchmarks/importable.toml, over the bases of benchmarks/installed_bases.py, with the releases of that day. Entries
# that are there stay; delete them to have them measured again.
"""


def write_undeclared(cache: Path, name: str, packages: Sequence[str], jobs: int = 1) -> None:
    """Bisect what is locked over a base and does not import; the file is written after each package."""
    bench = Bench(open_uv(cache), BASES[name], cache)

    def one(package: str) -> None:
        row = bench.row(package)
        if row.locked and not row.imports:
            found = search(bench, package, [bound for bound in load_bounds(UNDECLARED) if bound.holds(bench.versions)])
            with _WRITING:
                write_bounds([*load_bounds(UNDECLARED), *found])

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, packages))


def write_bounds(bounds: Iterable[UndeclaredBound]) -> None:
    """Write the file; of two entries for one package and one cause, the stricter one stays."""
    chosen: dict[tuple[str, tuple[str, ...]], UndeclaredBound] = {}
    for bound in sorted(set(bounds), key=lambda bound: (bound.package, bound.when, _version(bound.versions))):
        chosen.setdefault((bound.package, bound.when), bound)
    head = _HEAD.format(date=datetime.date.today().isoformat())
    write_atomically(UNDECLARED, "\n".join([head, *(f"{text_of(bound)}\n" for bound in chosen.values())]))


def text_of(bound: UndeclaredBound) -> str:
    """An entry of the file: JSON's texts and lists are TOML's."""
    fields = {**asdict(bound), "when": list(bound.when)}
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return "\n".join(["[[bound]]", *lines])


def _version(specifier: str) -> Version:
    return Version(specifier.lstrip("<=>!~"))


def search(bench: Bench, package: str, known: list[UndeclaredBound]) -> list[UndeclaredBound]:
    """The bounds with which a package imports, beyond those `known`; [] where none were found, or none are needed."""
    found: list[UndeclaredBound] = []
    for _ in range(_ROUNDS):
        result = _try(bench, package, [*known, *found])
        if result is None or isinstance(result, str):
            say(f"{bench.base.name}: {package}: {result or 'imports'} with {[bound.versions for bound in found]}")
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
    bench: Bench, package: str, bounds: Iterable[UndeclaredBound], *more: str
) -> tuple[Failure, dict[str, str]] | str | None:
    """None where the lock imports; why there is no lock; or the failure, with what was added."""
    lines = sorted({f"{bound.package}{bound.versions}" for bound in bounds if bound.package == package})
    try:
        lock = bench.lock(package, *lines, *more)
        added = {package.name: package.version for package in lock.packages}
        held = [f"{bound.package}{bound.versions}" for bound in bounds if bound.package in added]
        if set(held) - set(lines):
            lock = bench.lock(package, *lines, *held, *more)
            added = {package.name: package.version for package in lock.packages}
    except CtkError as error:
        return f"refused: {' '.join(error.message.split())[-200:]}"
    failure = bench.failure_of(lock, package)
    return None if failure is None else (failure, added)


def _hold_back(
    bench: Bench, package: str, bounds: list[UndeclaredBound], failure: Failure, added: dict[str, str]
) -> UndeclaredBound | None:
    """The bound that removes a failure: on what its message names, or on what failed first, or on the package."""
    ours = [name for name in failure.owners if name in added]
    named = [name for name in added if _names(failure.error, name)]
    for suspect in dict.fromkeys([*named, *ours, package]):
        if suspect not in added:
            continue
        answer = _first_failing(bench, package, bounds, failure, suspect, Version(added[suspect]))
        if answer is None:
            continue
        first, works = answer
        if works or (suspect == package and _is_for_good(bench, failure, suspect)):
            return _bound(bench, failure, suspect, first, added, works=works)
    return None


def _is_for_good(bench: Bench, failure: Failure, suspect: str) -> bool:
    """Whether the base is why it fails, and not the lack of a GPU, a library or an undeclared requirement."""
    text = " ".join([failure.error, *failure.texts])
    if _LACKS.search(text):
        return False
    return "undefined symbol" in text or _names(text, _cause(bench, failure, suspect))


def _first_failing(
    bench: Bench, package: str, bounds: list[UndeclaredBound], failure: Failure, suspect: str, chosen: Version
) -> tuple[Version, bool] | None:
    """The oldest version of the suspect that is known to fail, and whether the one before it works.

    None where the index does not tell the releases.
    """
    made = datetime.date.fromisoformat(bench.base.date)
    begin, soon = (str(made + datetime.timedelta(days)) for days in (-_DAYS_BEFORE, _DAYS_AFTER))
    days = bench.releases.days(suspect)
    begin = min(begin, days.get(chosen, begin))
    known = [version for version, day in days.items() if version <= chosen and day >= begin]
    if not known:
        return None
    low, high = -1, len(known) - 1  # known[high] fails; known[low] does not, once low is not -1
    works = False
    # What is built for one framework each works neither with older nor with newer ones: its own age is tried first.
    guess = sum(days[version] <= soon for version in known) - 1
    while high - low > 1:
        middle = guess if low < guess < high else (low + high) // 2
        guess = -1
        result = _try(bench, package, bounds, f"{suspect}<={known[middle]}")
        say(f"{bench.base.name}: {package} with {suspect}<={known[middle]}: {_short(result)}")
        if isinstance(result, str):
            low = middle  # nothing older is on offer at all
        elif result is None or not _same(result[0], failure, suspect):
            low, works = middle, True
        else:
            high = middle
    return known[high], works


def _same(failure: Failure, other: Failure, suspect: str) -> bool:
    """Whether it is still the suspect that fails, and not, after it, something else."""
    return failure.error == other.error or suspect in failure.owners[:1] or not failure.owners


def _bound(
    bench: Bench, failure: Failure, suspect: str, first: Version, added: dict[str, str], *, works: bool
) -> UndeclaredBound:
    cause = _cause(bench, failure, suspect)
    there = Version(bench.target.installed[cause].version)
    importer = next((name for name in failure.owners if name in added), suspect)
    if works and importer != suspect:  # of two that are added, one is too new for the other
        cause, there = importer, Version(added[importer])
    which = f"{suspect} {short(first)} and newer do not work" if works else f"no release of {suspect} works"
    return UndeclaredBound(
        package=suspect,
        versions=f"<{short(first)}" if works else "<0",
        when=(_when(bench.releases, failure.error, cause, there, bench.releases.day(suspect, first)),),
        why=f"{which} with {cause} {there.public} ({failure.error.rstrip('.')})",
        source=f"imported over {bench.base.title} ({cause} {there.public})",
        date=datetime.date.today().isoformat(),
    )


def _when(releases: Releases, error: str, cause: str, there: Version, day: str) -> str:
    """Of which versions of the cause it is true: what the message says, else the series that was measured.

    What is older than the cause fails with the newer series as well, what is newer with the older ones.
    """
    if day and day < releases.day(cause, there):
        # Before 1.0, what is removed goes in any release.
        return f"{cause}>={series(there) if there.major else there.public}"
    said = next((Version(least or other) for least, other in _NEEDS.findall(error)), None)
    if said is not None and said > there and said.major <= there.major + 1:
        return f"{cause}<{short(said)}"
    later = releases.next_series(cause, there)
    return f"{cause}<{later}" if later else f"{cause}<={there.public}"


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
    modules = (module for module, name in names().imports.items() if name == distribution)
    pattern = "|".join(re.escape(module).replace(r"\-", "[-_ ]") for module in (distribution, *modules))
    return re.search(rf"(?<![A-Za-z0-9_-])(?:{pattern})(?![A-Za-z0-9_-])", text, re.IGNORECASE) is not None


def _short(result: tuple[Failure, dict[str, str]] | str | None) -> str:
    return "imports" if result is None else result if isinstance(result, str) else result[0].error
