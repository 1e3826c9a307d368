"""Map imports to distributions: the typed form of `names.toml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge, matches
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import misspelt
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.inventory.knowledge.frameworks import DataParts

MISSPELT = "misspelt-package"

_FILE = Path(__file__).with_name("names.toml")


@dataclass(frozen=True, slots=True)
class Stranger:
    """A name that is another package on PyPI than users expect: `what`, "" if it is not there.

    `means` is the name that they mean, `way` how to get it if there is no such name. `works`: it can be installed.
    """

    name: str
    means: str | None
    what: str
    way: str | None
    works: bool

    @property
    def message(self) -> str:
        what = f"{self.name} on PyPI is {self.what}" if self.what else f"{self.name} is not on PyPI"
        return f"{what}: use {self.means}" if self.means else what


@dataclass(frozen=True, slots=True)
class Names:
    """Distributions by dotted import name, and PyPI's names by conda's; "" means not available there.

    `companions` are patterns of distributions by the framework that they compute with, `data` what of a framework only
    feeds another one, `alike` well-known distributions whose names are close to others.
    """

    imports: dict[str, str]
    conda: dict[str, str]
    companions: dict[str, tuple[str, ...]]
    data: dict[str, DataParts]
    strangers: dict[str, Stranger]
    alike: frozenset[str]

    def distribution(self, module: str) -> str | None:
        """The distribution that gives `module` (dotted; the longest known part of it counts); None: not known."""
        parts = module.split(".")
        for length in range(len(parts), 0, -1):
            found = self.imports.get(".".join(parts[:length]))
            if found is not None:
                return found
        return None

    def by_import(self, requirement: str) -> str | None:
        """`requirement` with the name of the distribution, where its name is that of an import: `cv2`, `PIL>=10`.

        None if the name is a distribution's own; "" if no distribution of PyPI gives that import.
        """
        name = _given_name(requirement)
        found = self.imports.get(name)
        if found is None or found == canonicalize_name(name) or "@" in requirement:
            return None
        return found and requirement.strip().replace(name, found, 1)

    def given_by(self, name: str, distributions: Iterable[str]) -> str | None:
        """The one of `distributions` that `name` means: itself, the one that gives this import, or a variant of that.

        `cv2` means opencv-python as well as opencv-python-headless.
        """
        there = {canonicalize_name(distribution) for distribution in distributions}
        own, found = canonicalize_name(name), self.imports.get(name) or ""
        if own in there or found in there:
            return own if own in there else found
        variants = knowledge().variants_of(found)
        return next(
            (
                distribution
                for distribution in sorted(there)
                if variants is not None and variants.includes(distribution)
            ),
            None,
        )

    def own_name(self, module: str) -> str:
        """The part of `module` that one distribution gives: `numpy` of `numpy.linalg`, but `google.cloud.bigquery`."""
        parts = module.split(".")
        prefixes = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
        shared = [prefix for prefix in prefixes if any(known.startswith(f"{prefix}.") for known in self.imports)]
        return prefixes[min(len(shared), len(prefixes) - 1)]

    def frameworks_behind(self, distribution: str) -> tuple[str, ...]:
        """The frameworks that a distribution computes with, if it is the companion of one, or of either."""
        return tuple(name for name, patterns in self.companions.items() if matches(distribution, patterns))

    def feeds(self, distribution: str) -> bool:
        """Whether a distribution only brings data to a framework, whichever it is."""
        return any(matches(distribution, package.distributions) for package in self.data.values())

    def stranger(self, requirement: str) -> Stranger | None:
        """What a requirement's name is on PyPI, if that is not what users mean; None for one with an address."""
        return None if "@" in requirement else self.strangers.get(canonicalize_name(_given_name(requirement)))

    def misspelt(self, requirement: str) -> str | None:
        """The distribution that was probably meant by a name that is close to a known one, and unknown: `sklern`."""
        name = canonicalize_name(given := _given_name(requirement))
        known = _known_names()
        other = given in self.imports or name in self.strangers or name in self.alike
        if "@" in requirement or other or known.get(name) == name:
            return None
        # An import's name in other letters, such as `pil`, is in the table itself.
        meant = name if name in known else misspelt(name, known)
        return None if meant is None else known[meant]

    def as_meant(self, requirements: Iterable[str]) -> tuple[list[str], list[Finding]]:
        """`requirements` with the names that users mean, and a warning for each that means something else on PyPI."""
        lines, findings = [], []
        for line in requirements:
            stranger = self.stranger(line)
            if stranger is not None:
                findings.append(Finding("another-package", Severity.WARNING, stranger.message, stranger.way))
            elif (correct := self.misspelt(line)) is not None:
                findings.append(Finding(MISSPELT, Severity.WARNING, misspelling(_given_name(line), correct)))
            means = stranger.means if stranger is not None else None
            lines.append(line.strip().replace(_given_name(line), means, 1) if means else line)
        return lines, findings

    def from_conda(self, package: str) -> str:
        """PyPI's name of a package of conda; "" if it has none. Most have the same, libraries of C have none."""
        known = self.conda.get(package.lower())
        if known is None and package.startswith(("_", "lib")):
            return ""
        return canonicalize_name(package) if known is None else known


def misspelling(name: str, correct: str) -> str:
    """What to say of a name that is probably misspelt."""
    return f"{name} is close to a well-known package name and not one itself: did you mean {correct}?"


def _given_name(requirement: str) -> str:
    """The name in a requirement as it was typed: imports differ from distributions in their capitals."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    return match[0] if match else ""


@cache
def _known_names() -> dict[str, str]:
    """The normalized names of imports, distributions and strangers, each with the distribution that it means."""
    table = names()
    imports = {canonicalize_name(name): found for name, found in table.imports.items() if found and "." not in name}
    variants = {name for group in knowledge().variants for name in group.distributions if "*" not in name}
    own = {*imports.values(), *table.conda.values(), *variants} - {""}
    strangers = {name: stranger.means or name for name, stranger in table.strangers.items()}
    return imports | strangers | {name: name for name in own}


@cache
def names() -> Names:
    """Read `names.toml` once, and add what the frameworks say."""
    content = read_toml(_FILE).content
    frameworks = knowledge().frameworks
    same = {name.replace("-", "_"): name for name in content["same"]}
    return Names(
        {**same, **content["other"], **{known.module: known.install for known in frameworks}},
        {**content["conda"], **{package: known.name for known in frameworks for package in known.conda}},
        {known.name: known.companions for known in frameworks},
        {known.name: known.data for known in frameworks if known.data},
        {
            name: Stranger(name, entry.get("means"), entry.get("is", ""), entry.get("way"), entry.get("works", True))
            for name, entry in content["strangers"].items()
        },
        frozenset(content["alike"]),
    )
