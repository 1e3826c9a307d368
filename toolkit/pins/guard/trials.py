"""The import step of a build: what it imports, and its results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.lock.model import RECIPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.pins.lock.model import Lock

_TIME_LIMIT = 300  # seconds for one package; TensorFlow takes 10 on a slow disk
CHECK_TIME_LIMIT = 600  # seconds for the recipe's own check


@dataclass(frozen=True, slots=True)
class ImportedPackage:
    """A distribution to import. `modules` are its import names if they are known; else they are read from the image."""

    name: str
    modules: tuple[str, ...]
    framework: bool


@dataclass(frozen=True, slots=True)
class ImportStep:
    """What a build imports at its end. `skip` are distributions left out; `environment` is the recipe's own.

    `seconds` is the time limit of each package. `check` is the recipe's own command, which runs after the imports.
    """

    packages: tuple[ImportedPackage, ...]
    skip: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    seconds: int = _TIME_LIMIT
    check: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """The recipe's own check, if it failed. `command` is a list as in the recipe, and `printed` its last lines."""

    command: str
    how: str
    printed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A package of an image that cannot be imported. `step` is `import MODULE`, or `trap NAME` for a known trap.

    `error` is one line: the exception, the signal, or what the trap found.
    """

    package: str
    version: str
    step: str
    error: str

    @property
    def message(self) -> str:
        if self.step.startswith("trap "):
            return f"{self.package} {self.version} does not work: {self.error}"
        module = self.step.partition(" ")[2]
        what = f" ({self.step})" if module != self.package else ""
        return f"{self.package} {self.version} cannot be imported{what}: {self.error}"


@dataclass(frozen=True, slots=True)
class Imported:
    """A package that was imported, in so many seconds; `steps` are the modules and the traps."""

    package: str
    version: str
    seconds: float
    steps: tuple[str, ...]


def import_step(
    lock: Lock,
    skip: Sequence[str] = (),
    environment: Iterable[tuple[str, str]] = (),
    check: Sequence[str] = (),
) -> ImportStep:
    """The import step of a lock: the direct packages, the frameworks of the base, and those that come."""
    known = knowledge()
    direct: list[str] = [canonicalize_name(Requirement(line).name) for line in lock.asked]
    # A replacement of a requested package has the same module.
    direct += [package.name for package in lock.packages if RECIPE in package.required_by]
    there = [*(pin.name for pin in lock.protected.pins), *(package.name for package in lock.packages)]
    frameworks = [name for name in there if known.framework_of(name) is not None]
    packages = tuple(
        ImportedPackage(name, _modules(name), name in frameworks) for name in dict.fromkeys([*frameworks, *direct])
    )
    return ImportStep(packages, tuple(skip), dict(environment), check=tuple(check))


def _modules(name: str) -> tuple[str, ...]:
    framework = knowledge().framework_of(name)
    if framework is not None:
        return (framework.module,)
    return tuple(sorted(module for module, distribution in names().imports.items() if distribution == name))
