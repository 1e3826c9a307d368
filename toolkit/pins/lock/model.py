"""The lock as plain values: the base, the protected packages, and the packages to add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.pins.lock.protected import NOTHING_PROTECTED, ProtectedSet
from toolkit.support.enums import StrEnum

if TYPE_CHECKING:
    from toolkit.recipes.model import Bootstrap, Index

RECIPE = "recipe"  # in `required_by`: the recipe itself
# Why a package is held back for no reason of its own.
EARLIER = "the earlier lock had this version; `ctk lock --upgrade` looks for newer ones"
PREFERRED = "the recipe prefers this version ([lock] prefer); `ctk lock --upgrade` looks for newer ones"


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One distribution to install: exactly this file. `file` is a name, no path and no address.

    `file` is None for the commit of a repository, which `url` names. `sha256` is None if the index names no hash;
    `url` only where the recipe itself gives an address.
    `replaces` is the version that the base has of it. `required_by` names what requires it, `recipe` for the recipe.
    """

    name: str
    version: str
    file: str | None
    sha256: str | None = None
    url: str | None = None
    replaces: str | None = None
    required_by: tuple[str, ...] = ()

    @property
    def is_wheel(self) -> bool:
        return self.file is not None and self.file.endswith(".whl")


@dataclass(frozen=True, slots=True)
class SourceBuild:
    """What some source distributions need to become wheels: `sources` are their names, `packages` wheels."""

    sources: tuple[str, ...]
    requires: tuple[str, ...]
    packages: tuple[LockedPackage, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """A package that is not at its newest version, and why: one sentence."""

    name: str
    version: str
    newest: str
    because: str


@dataclass(frozen=True, slots=True)
class Displaced:
    """A package that is not in the version that it should have, and why: one sentence.

    `versions` are those of the recipe's `prefer` and of earlier locks, most wanted first. A later lock takes the first
    of them that has become possible.
    """

    name: str
    versions: tuple[str, ...]
    because: str


class Inventoried(StrEnum):
    """How the packages of a base are known: read from its image, or as `bases.toml` records them."""

    READ = "read"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class LockedBase:
    """What the lock was made for.

    `digest` is the registry's for an image from a registry, the content's for a local one, and None if the registry
    could not be asked.
    """

    name: str
    bootstrap: Bootstrap
    reference: str | None
    digest: str | None
    inventory: Inventoried
    python: str
    architecture: str
    glibc: str | None = None
    executable: str | None = None


@dataclass(frozen=True, slots=True)
class Lock:
    """Everything that determines the Python packages of an image.

    `input` is the hash of what was asked for. `installer` is a newer pip where the image's own cannot take one of the
    files. `present` are the base's own distributions (`name==version`). `indexes` are asked beside PyPI. `own` protects
    the GPU frameworks that the lock itself adds, as `protected` does those of the base. `preferred` are those of the
    recipe's `prefer` that apply here (`name==version`).
    """

    recipe: str
    input: str
    base: LockedBase
    asked: tuple[str, ...]
    protected: ProtectedSet
    packages: tuple[LockedPackage, ...] = ()
    builds: tuple[SourceBuild, ...] = ()
    installer: LockedPackage | None = None
    held: tuple[Held, ...] = ()
    present: tuple[str, ...] = ()
    exclude_newer: str | None = None
    notes: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    own: ProtectedSet = NOTHING_PROTECTED
    preferred: tuple[str, ...] = ()
    displaced: tuple[Displaced, ...] = ()

    @property
    def architecture(self) -> str:
        """The architecture that the lock is for."""
        return self.base.architecture

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the packages to add, by name."""
        return {package.name: package.version for package in self.packages}

    def package(self, name: str) -> LockedPackage | None:
        return next((package for package in self.packages if package.name == name), None)
