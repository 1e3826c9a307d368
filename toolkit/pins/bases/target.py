"""What the resolver needs to know about a base: its Python, its C library, and the installed packages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.inventory.contents.markers import marker_environment
from toolkit.inventory.contents.model import Distribution
from toolkit.inventory.knowledge.frameworks import is_prerelease
from toolkit.inventory.knowledge.names import names
from toolkit.recipes.architectures import host_architecture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolkit.inventory.contents.model import Interpreter, Inventory
    from toolkit.recipes.model import Base

# The C library of an unknown image: the oldest one that its Python version is likely to run on.
# Such a lock is provisional ("recorded"), and regenerated from the image itself before anything is built.
_ASSUMED_GLIBC = {True: (2, 28), False: (2, 17)}


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """One Python of a base.

    `python` is `3.11.2`, or `3.11` if no more is known; `glibc` (major, minor), None if it is not known.
    `installed` are the distributions that it finds, of two copies the one that an import gets, by normalized name.
    `recorded` says that the facts come from `bases.toml` and not from the image. `conda` names the distributions
    that conda installed, not pip. `constraints` are lines of a constraint file that the image ships for its pip.
    `free_threaded`: it is built without the global lock, and takes wheels of an ABI of its own (cp313t).
    `programs` are the compilers that it has (`compiled.toml`), None if unknown.
    `aliases` are those of `installed` that are missing: another distribution replaces them (`pins.aliases`).
    """

    python: str
    installed: Mapping[str, Distribution]
    glibc: tuple[int, int] | None = None
    architecture: str = "x86_64"
    executable: str | None = None
    recorded: bool = False
    conda: frozenset[str] = frozenset()
    constraints: tuple[str, ...] = ()
    free_threaded: bool = False
    aliases: frozenset[str] = frozenset()
    programs: frozenset[str] | None = None

    @property
    def minor(self) -> str:
        """`3.11` of `3.11.2`."""
        return ".".join(self.python.split(".")[:2])

    @property
    def python_version(self) -> tuple[int, int]:
        major, minor = self.minor.split(".")
        return int(major), int(minor)

    @property
    def assumed_glibc(self) -> tuple[int, int]:
        return self.glibc or _ASSUMED_GLIBC[self.python_version >= (3, 8)]

    def environment(self) -> dict[str, str]:
        """The values of PEP 508 markers there; of a Python known as `3.11` the micro version is taken to be 0."""
        return marker_environment(self.python, self.architecture)


def valid_version(text: str) -> Version | None:
    """The version, or None if it is not one that PEP 440 knows (Debian and conda have such)."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def read_target(
    inventory: Inventory, is_framework: Callable[[str], bool], constraints: tuple[str, ...] = ()
) -> PythonTarget | None:
    """The Python that packages are added to: the default one, unless only another holds a framework.

    None if the image has no Python.
    """
    with_framework = [
        interpreter for interpreter in inventory.interpreters if any(map(is_framework, inventory.visible(interpreter)))
    ]
    default = inventory.default_interpreter()
    chosen = default if default in with_framework or not with_framework else with_framework[0]
    if chosen is None:
        return None
    visible = inventory.visible(chosen)
    return PythonTarget(
        python=chosen.version,
        installed=visible,
        glibc=_pair(inventory.glibc),
        architecture=inventory.architecture or host_architecture(),
        executable=chosen.path,
        conda=_from_conda(inventory, chosen, visible),
        constraints=constraints,
        free_threaded=chosen.free_threaded,
    )


def is_recorded(base: Base) -> bool:
    """Whether packages can be chosen for a base by its entry alone: its Python is known, and its framework on PyPI.

    What a vendor builds itself (2.8.0a0+5228986c39) is on no index, so that its requirements are unknown.
    """
    return base.python is not None and not is_prerelease(base.framework_version or "")


def recorded_target(base: Base, architecture: str) -> PythonTarget | None:
    """The Python that `bases.toml` records of a base, on `architecture`; None if packages cannot be chosen by that."""
    if base.python is None or not is_recorded(base):
        return None
    installed: dict[str, Distribution] = {}
    if base.framework is not None and base.framework_version is not None:
        name = canonicalize_name(base.framework)
        installed[name] = Distribution(name, base.framework_version, "", "", installer=base.installer)
    conda = frozenset(installed) if base.installer == "conda" else frozenset[str]()
    return PythonTarget(
        python=base.python,
        installed=installed,
        glibc=_pair(base.glibc),
        architecture=architecture,
        recorded=True,
        conda=conda,
    )


def _from_conda(inventory: Inventory, interpreter: Interpreter, visible: Mapping[str, Distribution]) -> frozenset[str]:
    """What conda installed: it says so in INSTALLER, or leaves no RECORD and has a package of that name."""
    ours = (package for package in inventory.conda_packages if package.prefix == interpreter.prefix)
    packages: set[str] = {canonicalize_name(package.name) for package in ours}
    # conda calls some distributions by another name: `pytorch`.
    packages |= {names().from_conda(name) for name in packages}
    return frozenset(
        name
        for name, distribution in visible.items()
        if distribution.installer == "conda"
        or (not distribution.has_record and distribution.installer is None and name in packages)
    )


def _pair(version: str | None) -> tuple[int, int] | None:
    if version is None:
        return None
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
