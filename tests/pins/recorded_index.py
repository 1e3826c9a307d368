"""What PyPI answers about the packages of `tests/data/lists`, recorded: metadata and names of files, no files.

`python -m tests.pins.recorded_index` records it anew (five minutes): of each package the releases that the lists name,
and the newest one for each requirement on it and each Python. The tests then need no network, and do not change with
PyPI.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.pins.python_targets import target
from tests.pins.small_index import Listed
from toolkit.pins.authoring.conda import read_conda_environment
from toolkit.pins.authoring.package_lists import read_requirements
from toolkit.pins.index.metadata import read_requirements as requires_of
from toolkit.pins.index.wheels import choose_file, supported_tags
from toolkit.pins.resolver.constraints import active_requirements
from toolkit.pins.resolver.question import Question
from toolkit.pins.resolver.releases import file_of, list_files, takes_python
from toolkit.recipes.requirements import exact_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.specifiers import SpecifierSet

LISTS = Path(__file__).parents[1] / "data/lists"
PYTHONS = ("3.8.18", "3.11.2", "3.12.3")
_FILE = LISTS / "index.json.gz"
_ROUNDS = 12  # of requirements of requirements


def recorded() -> tuple[Listed, ...]:
    """The files of the index."""
    rows = json.loads(gzip.decompress(_FILE.read_bytes()))
    return tuple(Listed(file, tuple(requires), *more) for file, requires, *more in rows)


def lists() -> list[Path]:
    """The lists, each by its path."""
    return sorted(path for path in LISTS.iterdir() if path.suffix in (".txt", ".yml") and path.name != "more.txt")


def _record() -> None:
    asked: set[Requirement] = set()
    for path in lists():
        reader = read_conda_environment if path.suffix == ".yml" else read_requirements
        for line in reader(path).requirements:
            requirement = Requirement(line)
            if not requirement.url:
                exact = exact_version(line)
                majors = [f"<{Version(exact).major + more}" for more in (1, 2)] if exact else []
                asked |= {Requirement(f"{requirement.name}{said}") for said in (requirement.specifier, "", *majors)}
    found: dict[str, Listed] = {}
    done: set[str] = set()
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(8) as pool:
        for _ in range(_ROUNDS):
            new = [line for line in asked if str(line) not in done]
            if not new:
                break
            done |= {str(line) for line in new}
            asked = set()
            for files in pool.map(lambda line: list(_files(line, Path(directory))), new):
                for listed in files:
                    found[listed.file] = listed
                    asked |= {Requirement(f"{line.name}{line.specifier}") for line in _active(listed)}
            print(len(found), "files,", len(asked), "requirements")
    rows = json.dumps([astuple(found[name]) for name in sorted(found)])
    _FILE.write_bytes(gzip.compress(rows.encode(), mtime=0))


def _active(listed: Listed) -> Iterator[Requirement]:
    for python in PYTHONS:
        yield from active_requirements(listed.requires, target(python=python).environment())


def _files(asked: Requirement, directory: Path) -> Iterator[Listed]:
    """The files of the releases that a requirement can mean: its newest for each Python, and the one that it names."""
    name = canonicalize_name(asked.name)
    question = Question(target(), ())
    releases = list_files(name, question, directory / "pages")
    chosen: dict[Version, None] = {}
    for python in PYTHONS:
        tags = supported_tags(target(python=python))
        for version in sorted(releases, reverse=True):
            rows = [row for row in releases[version] if takes_python(row, python) and not row.get("yanked")]
            file = choose_file(map(file_of, rows), tags)
            if not version.is_prerelease and file and _fits(version, asked.specifier):
                chosen[version] = None
                break
    exact = [version for version in releases if asked.specifier and str(asked.specifier) == f"=={version}"]
    for version in {*chosen, *exact}:
        yield from _listed(releases[version], directory / "metadata")


def _fits(version: Version, specifier: SpecifierSet) -> bool:
    return specifier.contains(version)


def _listed(rows: list[dict[str, Any]], directory: Path) -> Iterator[Listed]:
    ours = [row for row in rows if _is_for_linux(row["filename"])]
    wheel = next((file_of(row) for row in ours if row["filename"].endswith(".whl")), None)
    requires = (requires_of(wheel, directory) if wheel else None) or ()
    for row in ours:
        python, uploaded = row.get("requires-python") or "", str(row.get("upload-time") or "")
        yield Listed(row["filename"], requires, python, bool(row.get("yanked")), uploaded)


@cache
def _is_for_linux(name: str) -> bool:
    if name.endswith((".tar.gz", ".zip")):
        return True
    return name.endswith(("-any.whl", "x86_64.whl")) and not any(word in name for word in ("macosx", "musl", "-pp"))


if __name__ == "__main__":
    _record()
