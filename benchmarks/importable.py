"""What is locked works: popular packages over real frameworks, locked by ctk, installed, and really imported.

`python -m benchmarks.importable` regenerates this section of RESULTS.md alone; `--bisect` writes undeclared.toml.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.installed_bases import BASES
from benchmarks.measure import cache_directory
from benchmarks.run import replace_section
from benchmarks.section import Section, Table, Target
from benchmarks.trial import Bench, Row, changes_at, kept_at, packages_over, read_changes, read_row
from toolkit.pins.index.uv import open_uv

# A row, and whether pip changes the protected set; None where that was not tried yet.
Tried = tuple[Row, bool | None]
_EXPECTED = 0.97

_WORDS = """\
Each base is installed from the framework's wheels on PyPI, in a virtual environment of Python 3.11. For each package
alone: what `pip install PACKAGE` would change there (*framework changed by pip*), and what `ctk lock` does. The locked
files are installed into a copy of the base, and imported in a fresh process without a GPU; of packages that load their
parts only on use, one part is used (benchmarks/importable.toml). Source distributions are built with the compiler of
the host; ctk says at lock time which ones need it."""


def run() -> Section:
    """All packages over all bases. Rows of an earlier run are kept: delete `importable/rows` in the cache."""
    return section(cache_directory() / "importable", tuple(BASES))


def section(cache: Path, bases: tuple[str, ...], again: tuple[str, ...] = (), jobs: int = 1) -> Section:
    """The figures of `bases`; the packages in `again` are tried again, whatever was kept."""
    return written({name: rows(cache, name, again, jobs) for name in bases})


def rows(cache: Path, name: str, again: tuple[str, ...] = (), jobs: int = 1) -> list[Tried]:
    """The row of each package over a base, and whether pip would change the protected set for it."""
    bench = Bench(open_uv(cache), BASES[name], cache)
    packages = packages_over(BASES[name])
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda package: bench.row(package, again=package in again), packages))
        replaced = list(pool.map(bench.replaced_by_pip, packages))
    return list(zip(found, map(bool, replaced), strict=True))


def kept_rows(cache: Path, name: str) -> list[Tried]:
    """What earlier runs kept of a base, and no more."""
    found = []
    for package in packages_over(BASES[name]):
        row = read_row(kept_at(cache, name, package))
        changed = read_changes(changes_at(cache, name, package))
        if row is not None:
            found.append((row, None if changed is None else bool(changed)))
    return found


def written(found: dict[str, list[Tried]]) -> Section:
    """The section that rows make, by base."""
    everything = [row for some in found.values() for row, _ in some]
    locked = [row for row in everything if row.locked]
    good = sum(row.imports for row in locked)
    share = good / max(len(locked), 1)
    wanted = sum(len(packages_over(base)) for base in BASES.values())
    counts = ("base", "packages", "framework changed by pip", "refused by ctk", "locked by ctk", "importable")
    broken = [
        (BASES[row.base].title, f"{row.package} {row.version}", row.failure or "") for row in locked if not row.imports
    ]
    refused = [(BASES[row.base].title, row.package, row.refused or "") for row in everything if not row.locked]
    median = statistics.median(row.seconds for row in everything) if everything else 0.0
    return Section(
        "Imports of locked packages",
        _WORDS,
        (
            Table("Packages that import", counts, tuple(_counts(name, some) for name, some in found.items())),
            Table("What is locked and does not import", ("base", "package", "reason"), tuple(broken)),
            Table("What ctk refuses", ("base", "package", "reason"), tuple(refused)),
        ),
        (
            Target(
                f"of what ctk locks, at least {_EXPECTED:.0%} import ({share:.1%}: {good} of {len(locked)}; "
                f"{len(everything)} of {wanted} packages tried; a package took {median:.0f} s, median)",
                share >= _EXPECTED and len(everything) == wanted,
            ),
        ),
    )


def _counts(name: str, some: list[Tried]) -> tuple[str, ...]:
    """A row of the table. Where a run has not come to its end, it says how many packages were tried."""
    locked = [row for row, _ in some if row.locked]
    by_pip = [replaced for _, replaced in some if replaced is not None]
    packages = len(packages_over(BASES[name]))
    tried = f"{len(some)} of {packages}" if len(some) < packages else f"{packages}"
    of = f" of {len(by_pip)}" if len(by_pip) < len(some) else ""
    figures = (len(some) - len(locked), len(locked), sum(row.imports for row in locked))
    return (BASES[name].title, tried, f"{sum(by_pip)}{of}", *map(str, figures))


def main(arguments: list[str]) -> int:
    """The exit status is 1 where the target was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.importable", description=__doc__)
    parser.add_argument(
        "--cache", type=Path, default=cache_directory() / "importable", help="where bases and rows are kept"
    )
    parser.add_argument("--base", action="append", choices=tuple(BASES), help="a base (default: all); prints only")
    parser.add_argument("--package", action="append", help="a package to bisect (default: all)")
    parser.add_argument(
        "--again", action="append", default=[], metavar="PACKAGE", help="a package whose row is not kept"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many packages at a time")
    parser.add_argument("--bisect", action="store_true", help="find versions that import; write undeclared.toml")
    parser.add_argument("--kept", action="store_true", help="write what earlier runs kept, and try nothing more")
    options = parser.parse_args(arguments)
    bases = tuple(options.base or BASES)
    if options.bisect:
        from benchmarks.bisecting import write_undeclared

        for name in bases:
            write_undeclared(options.cache, name, options.package or packages_over(BASES[name]), options.jobs)
        return 0
    if options.kept:
        result = written({name: found for name in bases if (found := kept_rows(options.cache, name))})
    else:
        result = section(options.cache, bases, tuple(options.again), options.jobs)
    print(result.markdown())
    if not options.base:
        replace_section(result)
    return 0 if all(target.met for target in result.targets) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
