"""From what code imports to what pip installs: the typed form of `names.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.utils import canonicalize_name

from toolkit.inventory.frameworks import matches
from toolkit.support.tomlfile import read_toml

_FILE = Path(__file__).with_name("names.toml")


@dataclass(frozen=True, slots=True)
class Names:
    """Distributions by dotted import name, and PyPI's names by conda's; "" is what is not to be had there.

    `companions` are patterns of distributions by the framework that they compute with.
    """

    imports: dict[str, str]
    conda: dict[str, str]
    companions: dict[str, tuple[str, ...]]

    def distribution(self, module: str) -> str | None:
        """The distribution that gives `module` (dotted; the longest known part of it counts); None: not known."""
        parts = module.split(".")
        for length in range(len(parts), 0, -1):
            found = self.imports.get(".".join(parts[:length]))
            if found is not None:
                return found
        return None

    def own_name(self, module: str) -> str:
        """The part of `module` that one distribution gives: `numpy` of `numpy.linalg`, but `google.cloud.bigquery`."""
        parts = module.split(".")
        prefixes = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
        shared = [one for one in prefixes if any(known.startswith(f"{one}.") for known in self.imports)]
        return prefixes[min(len(shared), len(prefixes) - 1)]

    def frameworks_behind(self, distribution: str) -> tuple[str, ...]:
        """The frameworks that a distribution computes with, where it is the companion of one, or of either."""
        return tuple(name for name, patterns in self.companions.items() if matches(distribution, patterns))

    def from_conda(self, package: str) -> str:
        """PyPI's name of a package of conda; "" where it has none. Most have the same, libraries of C have none."""
        known = self.conda.get(package.lower())
        if known is None and package.startswith(("_", "lib")):
            return ""
        return canonicalize_name(package) if known is None else known


@cache
def names() -> Names:
    """Read `names.toml` once."""
    content = read_toml(_FILE).content
    same = {name.replace("-", "_"): name for name in content["same"]}
    companions = {framework: tuple(patterns) for framework, patterns in content["companions"].items()}
    return Names({**same, **content["other"]}, content["conda"], companions)
