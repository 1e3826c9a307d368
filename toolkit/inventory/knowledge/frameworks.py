"""ctk's data about GPU frameworks and what is tied to them: this module finds and reads their files.

Each framework is two files in `toolkit/inventory/frameworks`: `NAME.toml` with its data, and `NAME.py`, which reads its
build from an image. The rest of ctk asks `knowledge()` and compares no names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.inventory.knowledge.builds import PtxFails
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.inventory.knowledge.builds import FrameworkBuild, Installed

Keep = Literal["exact", "major"]
_Kind = TypeVar("_Kind")
_PATTERNS = (
    *("variants", "cpu", "parts", "gpu_parts", "libraries", "needs", "extras", "conda", "companions", "bases"),
)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_FRAMEWORKS = Path(__file__).parents[1] / "frameworks"
_OTHERS = Path(__file__).with_name("distributions.toml")


@dataclass(frozen=True, slots=True)
class Welded:
    """A distribution (name, may hold `*`) that works only with the framework as it is, and how much must stay."""

    name: str
    keep: Keep


@dataclass(frozen=True, slots=True)
class Follows:
    """All parts of a framework are ignored that are not of the version of `leader`, if that is in `versions`."""

    leader: str
    versions: str
    source: str


@dataclass(frozen=True, slots=True)
class Platform:
    """Variables that name the device on which a framework computes; `gpu` are the values that mean the GPU."""

    variables: tuple[str, ...]
    gpu: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Fix:
    """What the audit advises for the finding `about`, where the framework's version is in `versions` ("": any).

    In `text`, `{version}` is the installed version and `{cuda}` the build's CUDA major. `in_program`: one line of the
    user's program is enough, so that the finding is a warning.
    """

    about: str
    text: str
    versions: str = ""
    in_program: bool = False


@dataclass(frozen=True, slots=True)
class DataParts:
    """The `parts` of a framework's module that read and prepare data, or write logs.

    Code that uses only these parts, and another framework, computes with the other one. `distributions` are companions
    that feed any framework; `instead` gives these parts without a GPU, so that it can lie beside the other framework.
    """

    parts: tuple[str, ...]
    distributions: tuple[str, ...]
    source: str
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class OldParts:
    """The `parts` of a framework's module that it has only `before` a version, in its `series` ("TensorFlow 1").

    Code that names one of `ported` too was ported. `fix` is what to do with other code.
    """

    series: str
    before: str
    parts: tuple[str, ...]
    ported: tuple[str, ...]
    fix: str
    source: str


@dataclass(frozen=True, slots=True)
class Wheels:
    """The `packages` that bring a framework over a `base` of the catalogue without one, best first.

    `cuda`, `cudnn`, `driver` and `gpu_code` (`code`) are as those of a base; cuDNN is "none" if it is not used. `name`
    is the distribution that users ask for, if that is not the framework's. The packages `skip` hold nothing to import.
    """

    base: str
    packages: tuple[str, ...]
    cuda: str
    driver: str
    gpu_code: tuple[str, ...]
    source: str
    cudnn: str | None = None
    name: str | None = None
    skip: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OnArm:
    """The wheels for aarch64 on PyPI: `packages` bring the framework with GPU code there, () if none does.

    Distributions of `cpu` never hold GPU code there, whatever they require; those of `bound` only if they require
    libraries of NVIDIA.
    """

    source: str
    packages: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Framework:
    """A GPU framework: the keys of its `NAME.toml`, and how its build is read. `name` is that of the file.

    Names are normalized; `*` in a name matches any characters. Version conditions are PEP 440 specifiers; a
    pre-release (2.3.0a0+ebedce2, as NVIDIA builds them) counts.

    `module` is what a program imports, `install` the distribution that gives it (if left out, `name`). `rank` orders
    the frameworks: of two that code uses alike, the lower one chooses the base. `variants` are distributions that
    install that module: only one of them may be there, though pip takes several; `cpu` are those that never hold GPU
    code. `parts` are its own other distributions where it comes in several, `gpu_parts` those that hold all its GPU
    code, `libraries` those that bring its GPU libraries: nothing may change them either. `needs` are NVIDIA's without
    all of which it computes on the CPU and says nothing, unless an image has CUDA. `welded` works only with the
    framework as it is. `extras` are words by which other distributions name the extra that is for it:
    transformers[torch]. `conda` are conda's names for it that are not PyPI's. `companions` compute with it without
    naming it: its own base is the one to start from; what computes with either of several stands with each, and decides
    only if nothing else does. `bases` are distributions by which a base of it is named, too. `beside_others`: it works
    next to any other framework, and is not a second one. `own_ptxas`: it compiles what it runs itself, so that its
    driver sees no PTX. `ptx_fails` are GPUs on which its PTX does not run.

    The tables `serves`, `pair` and `incompatible` of its file are `Stand`, `Pairing` and `Incompatibility`.
    """

    name: str
    title: str
    module: str
    install: str
    rank: int
    variants: tuple[str, ...]
    cpu: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    gpu_parts: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    welded: tuple[Welded, ...] = ()
    extras: tuple[str, ...] = ()
    conda: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    beside_others: bool = False
    own_ptxas: bool = False
    ptx_fails: tuple[PtxFails, ...] = ()
    follows: Follows | None = None
    platform: Platform | None = None
    fixes: tuple[Fix, ...] = ()
    data: DataParts | None = None
    old: OldParts | None = None
    on_arm: OnArm | None = None
    wheels: tuple[Wheels, ...] = ()

    def read_build(self, installed: Installed) -> FrameworkBuild:
        """What its files say of how it was built. Only what an image holds is imported."""
        read: Callable[[Installed], FrameworkBuild]
        read = import_module(f"toolkit.inventory.frameworks.{self.name}").read_build
        return read(installed)

    def is_variant(self, distribution: str) -> bool:
        """Whether a distribution (normalized name) is this framework."""
        return matches(distribution, self.variants)

    def is_required_in(self, line: str) -> bool:
        """Whether a Requires-Dist names this framework. Looks at the name alone: parsing a line is slow."""
        name = _NAME.match(line)
        return name is not None and self.is_variant(canonicalize_name(name.group()))

    def is_cpu_only(self, distribution: str) -> bool:
        """Whether a distribution is this framework in a form that never holds GPU code."""
        return matches(distribution, self.cpu)

    def welded_as(self, distribution: str) -> Keep | None:
        """How much of a distribution's version the framework needs kept; None if it needs nothing."""
        return next((welded.keep for welded in self.welded if matches(distribution, (welded.name,))), None)

    def fix(self, about: str, version: str) -> Fix | None:
        """What to advise for a finding about this version of the framework; None if nothing special is known."""
        known = (fix for fix in self.fixes if fix.about == about)
        return next((fix for fix in known if not fix.versions or satisfies(version, fix.versions)), None)


@dataclass(frozen=True, slots=True)
class Stand:
    """A variant that can replace others; `lacks` is what only the others have."""

    name: str
    others: tuple[str, ...]
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class Variants:
    """Distributions that install the same module and therefore exclude one another. `title` is its name for users.

    `stands` are those that can replace others, most preferred first.
    """

    module: str
    title: str
    distributions: tuple[str, ...]
    stands: tuple[Stand, ...] = ()

    def includes(self, distribution: str) -> bool:
        """Whether a distribution (normalized name) is one of them."""
        return matches(distribution, self.distributions)

    def served_by(self, distribution: str, name: str) -> Stand | None:
        """How one distribution can replace another of this group, `name`; None if it cannot."""
        return next(
            (
                stand
                for stand in self.stands
                if matches(distribution, (stand.name,)) and matches(name, stand.others) and name != distribution
            ),
            None,
        )


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which releases of a companion belong to which releases of a framework; `rows` are (framework, companion).

    `severity` is "error" where the import fails when they are out of step, else "warning".
    """

    framework: str
    companion: str
    severity: str
    source: str
    rows: tuple[tuple[str, str], ...]

    def wanted(self, framework_version: str) -> str | None:
        """The specifier for the companion beside this framework version; None if no row names it."""
        return next((companion for ours, companion in self.rows if satisfies(framework_version, ours)), None)


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """What metadata allows and the import, or a part ("warning"), refuses: `name` in `versions` beside `other`."""

    name: str
    versions: str
    other: str
    other_versions: str
    reason: str
    source: str
    severity: str = "error"


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All frameworks by rank, and what is known of other distributions. `variants` are those of both."""

    frameworks: tuple[Framework, ...]
    nvidia: tuple[str, ...]
    variants: tuple[Variants, ...]
    pairings: tuple[Pairing, ...]
    incompatibilities: tuple[Incompatibility, ...]

    def framework_of(self, distribution: str) -> Framework | None:
        """The framework that a distribution (normalized name) is, or None."""
        return next((found for found in self.frameworks if found.is_variant(distribution)), None)

    def variants_of(self, distribution: str) -> Variants | None:
        """The group that a distribution shares its module with, or None."""
        return next((found for found in self.variants if found.includes(distribution)), None)

    def is_gpu_library(self, distribution: str) -> bool:
        """Whether a distribution brings GPU libraries: NVIDIA's wheels, triton, jaxlib and its plugins, …"""
        return matches(distribution, self.nvidia) or any(
            matches(distribution, framework.libraries) for framework in self.frameworks
        )


@cache
def knowledge() -> Knowledge:
    """Read the file of each framework, and `distributions.toml`, once."""
    tables = {path.stem: read_toml(path).content for path in _FRAMEWORKS.glob("*.toml")}
    tables = dict(sorted(tables.items(), key=lambda item: int(item[1]["rank"])))
    frameworks = tuple(_framework(name, table) for name, table in tables.items())
    others = read_toml(_OTHERS).content
    refused = [(name, row) for name, table in tables.items() for row in table.get("incompatible", ())]
    refused += [(row["with"], row) for row in others["incompatible"]]
    return Knowledge(
        frameworks=frameworks,
        nvidia=tuple(others["nvidia"]["libraries"]),
        variants=(
            *(_variants(tables[known.name], known.variants) for known in frameworks if known.variants != (known.name,)),
            *(_variants(row, tuple(row["distributions"])) for row in others["variants"]),
        ),
        pairings=tuple(_pairing(name, row) for name, table in tables.items() for row in table.get("pair", ())),
        incompatibilities=tuple(_incompatibility(name, row) for name, row in refused),
    )


def _framework(name: str, table: dict[str, Any]) -> Framework:
    return Framework(
        name=name,
        title=table["title"],
        module=table["module"],
        install=table.get("install", name),
        rank=table["rank"],
        welded=tuple(_one(Welded, row) for row in table.get("welded", ())),
        fixes=tuple(_one(Fix, row) for row in table.get("fix", ())),
        ptx_fails=tuple(_one(PtxFails, row) for row in table.get("ptx_fails", ())),
        follows=_one(Follows, table["follows"]) if "follows" in table else None,
        platform=_one(Platform, table["platform"]) if "platform" in table else None,
        data=_one(DataParts, table["data"]) if "data" in table else None,
        old=_one(OldParts, table["old"]) if "old" in table else None,
        on_arm=_one(OnArm, table["on_arm"]) if "on_arm" in table else None,
        wheels=tuple(_one(Wheels, row) for row in table.get("wheels", ())),
        beside_others=table.get("beside_others", False),
        own_ptxas=table.get("own_ptxas", False),
        **{key: tuple(table[key]) for key in _PATTERNS if key in table},
    )


def _pairing(framework: str, table: dict[str, Any]) -> Pairing:
    rows = tuple((row["framework"], row["companion"]) for row in table["rows"])
    return Pairing(framework, table["companion"], table["severity"], table["source"], rows)


def _incompatibility(other: str, table: dict[str, Any]) -> Incompatibility:
    values = {key: table[key] for key in ("name", "versions", "reason", "source", "severity") if key in table}
    return Incompatibility(other=other, other_versions=table["with_versions"], **values)


def _variants(table: dict[str, Any], distributions: tuple[str, ...]) -> Variants:
    stands = (Stand(row["name"], tuple(row["for"]), row.get("lacks")) for row in table.get("serves", ()))
    return Variants(table["module"], table["title"], distributions, tuple(stands))


def _one(kind: type[_Kind], table: dict[str, Any]) -> _Kind:
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a normalized name is one of `patterns`, in which `*` matches any characters."""
    # fnmatch compiles each pattern, which takes longer than all that an audit compares.
    return any(name == pattern or ("*" in pattern and fnmatchcase(name, pattern)) for pattern in patterns)


def satisfies(version: str, specifier: str) -> bool:
    """Whether a version meets a PEP 440 specifier, pre-releases included; one that is no version meets none."""
    try:
        return _specifier(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


@cache
def _specifier(text: str) -> SpecifierSet:
    return SpecifierSet(text)


def is_prerelease(version: str) -> bool:
    """Whether a version is one before a release, as vendors number what they build themselves (2.5.0a0+872d972e41)."""
    try:
        return Version(version).is_prerelease
    except InvalidVersion:
        return False
