"""What is locked works: popular packages over real frameworks, locked by ctk, installed, and really imported.

`python -m benchmarks.importable` regenerates this section of RESULTS.md alone; `--bisect` writes undeclared.toml.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.installed_bases import BASES
from benchmarks.measure import cache_folder
from benchmarks.run import replace_section
from benchmarks.section import Section, Table, Target
from benchmarks.trial import Bench, packages_over
from toolkit.pins.uv import open_uv

if TYPE_CHECKING:
    from benchmarks.trial import Row

_EXPECTED = 0.97

_WORDS = """\
Each base is really installed: the wheels that PyPI has of the framework, into a virtual environment of Python 3.11. For
each package alone: what `uv pip install PACKAGE` would change there (*replaced by pip*), and what `ctk lock` does. What
is locked is installed, exactly those files, into a copy of the base, and imported in a fresh process without a GPU; of
packages that load their parts only on use, one part is used (benchmarks/importable.toml). Source distributions are
built with the compiler of the host; ctk says at lock time which ones need it."""


def run() -> Section:
    """All packages over all bases. Rows of an earlier run are kept: delete `importable/rows` in the cache."""
    return section(cache_folder() / "importable", tuple(BASES))


def section(cache: Path, bases: tuple[str, ...], again: tuple[str, ...] = (), jobs: int = 1) -> Section:
    """The figures of `bases`; the packages in `again` are tried again, whatever was kept."""
    return written({name: rows(cache, name, again, jobs) for name in bases})


def rows(cache: Path, name: str, again: tuple[str, ...] = (), jobs: int = 1) -> list[tuple[Row, bool]]:
    """The row of each package over a base, and whether pip would change the protected set for it."""
    bench = Bench(open_uv(cache), BASES[name], cache)
    packages = packages_over(BASES[name])
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda package: bench.row(package, again=package in again), packages))
        replaced = list(pool.map(bench.replaced_by_pip, packages))
    return list(zip(found, map(bool, replaced), strict=True))


def written(found: dict[str, list[tuple[Row, bool]]]) -> Section:
    """The section that rows make, by base."""
    everything = [row for some in found.values() for row, _ in some]
    locked = [row for row in everything if row.locked]
    good = sum(row.imports for row in locked)
    share = good / max(len(locked), 1)
    counts = ("base", "packages", "replaced by pip", "refused by ctk", "locked by ctk", "importable")
    broken = [
        (BASES[row.base].title, f"{row.package} {row.version}", row.failure or "") for row in locked if not row.imports
    ]
    refused = [(BASES[row.base].title, row.package, row.refused or "") for row in everything if not row.locked]
    hours = sum(row.seconds for row in everything) / 3600
    return Section(
        "What is locked imports",
        _WORDS,
        (
            Table("Packages that import", counts, tuple(_counts(name, some) for name, some in found.items())),
            Table("What is locked and does not import", ("base", "package", "reason"), tuple(broken)),
            Table("What ctk refuses", ("base", "package", "reason"), tuple(refused)),
        ),
        (
            Target(
                f"of what ctk locks, at least {_EXPECTED:.0%} import ({share:.1%}: {good} of {len(locked)}; "
                f"{hours:.1f} hours of one job)",
                share >= _EXPECTED,
            ),
        ),
    )


def _counts(name: str, some: list[tuple[Row, bool]]) -> tuple[str, ...]:
    locked = [row for row, _ in some if row.locked]
    figures = (
        len(some),
        sum(replaced for _, replaced in some),
        len(some) - len(locked),
        len(locked),
        sum(row.imports for row in locked),
    )
    return (BASES[name].title, *map(str, figures))


def main(arguments: list[str]) -> int:
    """The exit status is 1 where the target was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.importable", description=__doc__)
    parser.add_argument(
        "--cache", type=Path, default=cache_folder() / "importable", help="where bases and rows are kept"
    )
    parser.add_argument("--base", action="append", choices=tuple(BASES), help="a base (default: all); prints only")
    parser.add_argument("--package", action="append", help="a package to bisect (default: all)")
    parser.add_argument(
        "--again", action="append", default=[], metavar="PACKAGE", help="a package whose row is not kept"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many packages at a time")
    parser.add_argument("--bisect", action="store_true", help="find versions that import; write undeclared.toml")
    options = parser.parse_args(arguments)
    bases = tuple(options.base or BASES)
    if options.bisect:
        from benchmarks.bisecting import write_undeclared

        for name in bases:
            write_undeclared(options.cache, name, options.package or packages_over(BASES[name]), options.jobs)
        return 0
    result = section(options.cache, bases, tuple(options.again), options.jobs)
    print(result.markdown())
    if not options.base:
        replace_section(result)
    return 0 if all(target.met for target in result.targets) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
