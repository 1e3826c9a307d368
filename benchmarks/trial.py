"""One package over one installed base: what pip would replace, what ctk locks, and whether that imports."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from benchmarks.importing import Failure, import_package
from benchmarks.installed_bases import Installed, install_base, install_lock, say
from benchmarks.pins import PACKAGES, by_pip
from benchmarks.releases import Releases
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.lock.protected import protect
from toolkit.pins.locking import make_lock
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CtkError
from toolkit.support.files import write_atomically
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.lock.protected import ProtectedSet

_LOCK_SECONDS = 240.0
_INSTALL_SECONDS = 420.0
_LISTS: dict[str, Any] = read_toml(Path(__file__).with_name("importable.toml")).content


@dataclass(frozen=True)
class Row:
    """What came out. `refused` says why ctk makes no lock.

    `version` and `added` are of the lock, `without_wheel` its source distributions. `failure` is an exception's last
    line, `texts` those behind it, `owners` the distributions whose code failed, the innermost first.
    """

    base: str
    package: str
    refused: str | None = None
    version: str | None = None
    added: tuple[str, ...] = ()
    without_wheel: tuple[str, ...] = ()
    failure: str | None = None
    texts: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def locked(self) -> bool:
        return self.refused is None

    @property
    def imports(self) -> bool:
        return self.locked and self.failure is None


def read_row(path: Path) -> Row | None:
    """A row that an earlier run kept."""
    if not path.is_file():
        return None
    fields = json.loads(path.read_text())
    return Row(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})


def kept_at(cache: Path, base: str, package: str) -> Path:
    """Where the row of a package is kept."""
    return cache / "rows" / base / f"{package}.json"


def changes_at(cache: Path, base: str, package: str) -> Path:
    """Where it is kept what pip would change for a package."""
    return cache / "by-pip" / base / f"{package}.json"


def read_changes(path: Path) -> tuple[str, ...] | None:
    """What pip would change, as an earlier run kept it."""
    return tuple(json.loads(path.read_text())) if path.is_file() else None


def packages_over(base: Installed) -> list[str]:
    """The packages that are tried over a base."""
    own = PACKAGES.get(base.name) or PACKAGES["torch"]
    names = {*own, *_LISTS["common"].split(), *_LISTS["over"][base.name].split()}
    return sorted(canonicalize_name(name) for name in names)


def statements(base: str, package: str, modules: Iterable[str]) -> list[str]:
    """What is run after a package's modules were imported; the frameworks of the base still have to import then."""
    probe = _LISTS["probe-over"].get(base, {}).get(package) or _LISTS["probe"].get(package)
    return [*([probe] if probe else []), *(f"import {module}" for module in modules)]


class Bench:
    """A base that is installed below `cache`, and what was found out over it."""

    def __init__(self, uv: Uv, base: Installed, cache: Path) -> None:
        self.uv = replace(uv, patience=_LOCK_SECONDS)
        self.base = base
        self.cache = cache
        self.environment = install_base(uv, base, cache)
        self.target: PythonTarget = self.environment.target()
        self.protected: ProtectedSet = protect(self.target, knowledge())
        self.versions = {name: distribution.version for name, distribution in self.target.installed.items()}
        self.releases = Releases(self.target, cache / "releases")

    def row(self, package: str, *, again: bool = False) -> Row:
        """The row of a package: the kept one, unless there is none, or it is wanted again."""
        path = kept_at(self.cache, self.base.name, package)
        known = None if again else read_row(path)
        if known is None:
            begun = time.monotonic()
            known = replace(self._try(package), seconds=round(time.monotonic() - begun, 1))
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(asdict(known), indent=1))
            say(f"{self.base.name}: {package}: {_summary(known)} ({known.seconds:.0f} s)")
        return known

    def replaced_by_pip(self, package: str) -> tuple[str, ...]:
        """What `pip install PACKAGE` would change of the protected set; kept too."""
        path = changes_at(self.cache, self.base.name, package)
        known = read_changes(path)
        if known is not None:
            return known
        found, _ = by_pip(self.environment.directory, self.target, self.protected, package)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(found))
        say(f"{self.base.name}: pip install {package} replaces {', '.join(found) or 'nothing'}")
        return found

    def lock(self, *packages: str) -> Lock:
        """ctk's lock of packages over this base."""
        base = Base("base", "localimage", "/base.sif")
        recipe = Recipe("bench", Path("bench.toml"), base, packages=packages)
        return make_lock(self.uv, recipe, BaseFacts(base, self.target, "sha256:0"))

    def failure_of(self, lock: Lock, package: str) -> Failure | None:
        """Install a lock into a copy of the base and import a package of it."""
        with self.environment.copied(self.cache / "copies", f"{self.base.name}-{package}") as copy:
            problem = install_lock(self.uv, copy, lock, _INSTALL_SECONDS)
            if problem is not None:
                return Failure(f"not installed: {problem}")
            # Only what replaces a distribution of the base can break a framework that the package does not import.
            frameworks = self.base.modules if any(package.replaces for package in lock.packages) else ()
            return import_package(copy, package, statements(self.base.name, package, frameworks))

    def _try(self, package: str) -> Row:
        row = Row(self.base.name, package)
        try:
            lock = self.lock(package)
        except CtkError as error:
            return replace(row, refused=" ".join(error.message.split())[-300:])
        added = {package.name: package.version for package in lock.packages}
        there = self.target.installed.get(package)
        row = replace(
            row,
            version=added.get(package) or (there.version if there else None),
            added=tuple(f"{name}=={version}" for name, version in added.items()),
            without_wheel=tuple(package.name for package in lock.packages if not package.is_wheel),
        )
        failure = self.failure_of(lock, package)
        if failure is None:
            return row
        ours = tuple(name for name in failure.owners if name in added)
        return replace(row, failure=failure.error, texts=failure.texts, owners=ours)


def _summary(row: Row) -> str:
    if row.refused is not None:
        return f"refused: {row.refused}"
    return f"{row.version} {row.failure or 'imports'}"
