"""The typed form of `frameworks.toml`: which distributions are frameworks, their variants, and what is tied to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.support.tomlfile import read_toml

Keep = Literal["exact", "major"]
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_FILE = Path(__file__).with_name("frameworks.toml")


@dataclass(frozen=True, slots=True)
class Welded:
    """A distribution (name, may hold `*`) that works only with the framework as it is, and how much must stay."""

    name: str
    keep: Keep


@dataclass(frozen=True, slots=True)
class Framework:
    """A GPU framework; the comments in `frameworks.toml` say what each field means."""

    name: str
    title: str
    module: str
    variants: tuple[str, ...]
    cpu: tuple[str, ...]
    libraries: tuple[str, ...]
    welded: tuple[Welded, ...]
    extras: tuple[str, ...]
    conda: tuple[str, ...]

    def is_variant(self, distribution: str) -> bool:
        """Whether a distribution (normalised name) is this framework."""
        return matches(distribution, self.variants)

    def is_required_in(self, line: str) -> bool:
        """Whether a Requires-Dist names this framework. Looks at the name alone: parsing a line is slow."""
        name = _NAME.match(line)
        return name is not None and self.is_variant(canonicalize_name(name.group()))

    def is_cpu_only(self, distribution: str) -> bool:
        """Whether a distribution is this framework in a form that never holds GPU code."""
        return matches(distribution, self.cpu)

    def welded_as(self, distribution: str) -> Keep | None:
        """How much of a distribution's version the framework needs kept; None where it needs nothing."""
        return next((welded.keep for welded in self.welded if matches(distribution, (welded.name,))), None)


@dataclass(frozen=True, slots=True)
class Stand:
    """A variant that can stand for others; `lacks` is what the others have and it has not."""

    name: str
    others: tuple[str, ...]
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class Variants:
    """Distributions that install the same module and therefore exclude one another. `title` is its name for users.

    `stands` are those that can stand for others, most preferred first.
    """

    module: str
    title: str
    distributions: tuple[str, ...]
    stands: tuple[Stand, ...] = ()

    def includes(self, distribution: str) -> bool:
        """Whether a distribution (normalised name) is one of them."""
        return matches(distribution, self.distributions)

    def served_by(self, distribution: str, name: str) -> Stand | None:
        """How one distribution can stand for another of this group, `name`; None where it cannot."""
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
        """The specifier for the companion beside this framework version; None where no row names it."""
        return next((companion for ours, companion in self.rows if satisfies(framework_version, ours)), None)


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """What metadata allows and the import refuses: `name` in `versions` beside `other` in `other_versions`."""

    name: str
    versions: str
    other: str
    other_versions: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All of `frameworks.toml`. `variants` holds those of the frameworks too."""

    frameworks: tuple[Framework, ...]
    nvidia: tuple[str, ...]
    variants: tuple[Variants, ...]
    pairings: tuple[Pairing, ...]
    incompatibilities: tuple[Incompatibility, ...]

    def framework_of(self, distribution: str) -> Framework | None:
        """The framework that a distribution (normalised name) is, or None."""
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
    """Read `frameworks.toml` once."""
    content = read_toml(_FILE).content
    frameworks = tuple(_framework(table) for table in content["framework"])
    own = [
        Variants(framework.module, framework.title, framework.variants, _stands(table))
        for framework, table in zip(frameworks, content["framework"], strict=True)
        if framework.variants != (framework.name,)
    ]
    others = [
        Variants(group["module"], group["title"], tuple(group["distributions"]), _stands(group))
        for group in content["variants"]
    ]
    return Knowledge(
        frameworks=frameworks,
        nvidia=tuple(content["nvidia"]["libraries"]),
        variants=(*own, *others),
        pairings=tuple(
            Pairing(
                pair["framework"],
                pair["companion"],
                pair["severity"],
                pair["source"],
                tuple((row["framework"], row["companion"]) for row in pair["rows"]),
            )
            for pair in content["pair"]
        ),
        incompatibilities=tuple(
            Incompatibility(
                entry["name"],
                entry["versions"],
                entry["with"],
                entry["with_versions"],
                entry["reason"],
                entry["source"],
            )
            for entry in content["incompatible"]
        ),
    )


def _stands(table: dict[str, Any]) -> tuple[Stand, ...]:
    return tuple(Stand(served["name"], tuple(served["for"]), served.get("lacks")) for served in table.get("serves", ()))


def _framework(table: dict[str, Any]) -> Framework:
    return Framework(
        name=table["name"],
        title=table["title"],
        module=table["module"],
        variants=tuple(table["variants"]),
        cpu=tuple(table.get("cpu", ())),
        libraries=tuple(table["libraries"]),
        welded=tuple(Welded(entry["name"], entry["keep"]) for entry in table["welded"]),
        extras=tuple(table["extras"]),
        conda=tuple(table["conda"]),
    )


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a normalised name is one of `patterns`, in which `*` stands for any characters."""
    # fnmatch compiles each pattern, which takes longer than all that an audit compares.
    return any(name == pattern or ("*" in pattern and fnmatchcase(name, pattern)) for pattern in patterns)


def satisfies(version: str, specifier: str) -> bool:
    """Whether a version meets a PEP 440 specifier, pre-releases included; one that is no version meets none."""
    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def is_prerelease(version: str) -> bool:
    """Whether a version is one before a release, as vendors number what they build themselves (2.5.0a0+872d972e41)."""
    try:
        return Version(version).is_prerelease
    except InvalidVersion:
        return False
