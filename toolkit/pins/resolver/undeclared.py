"""The typed form of `undeclared.toml`: which releases install over a base but do not work there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.pins.bases.target import valid_version
from toolkit.pins.resolver.constraints import Constraint
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.support.tomlfile import TomlFile

_FILE = Path(__file__).with_name("undeclared.toml")
_KEYS = ("package", "versions", "when", "why", "source", "date")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class UndeclaredBound:
    """Of `package` only `versions` work where all of `when` hold; the comments in `undeclared.toml` say more."""

    package: str
    versions: str
    when: tuple[str, ...]
    why: str
    source: str
    date: str

    def holds(self, present: Mapping[str, str]) -> bool:
        """Whether it counts where these versions (by name) are installed."""
        return all(_meets(Requirement(line), present) for line in self.when)


@cache
def undeclared_bounds() -> tuple[UndeclaredBound, ...]:
    """Read `undeclared.toml` once."""
    return load_bounds(_FILE)


def load_bounds(path: Path) -> tuple[UndeclaredBound, ...]:
    """The bounds of a file. Raises WrongInput, with the line, for what is wrong in it."""
    file = read_toml(path)
    file.check_keys(file.content, ("bound",))
    tables = file.get(file.content, "bound", list) or []
    return tuple(_bound(file, table, f"bound[{number}].") for number, table in enumerate(tables, 1))


def constraints_over(
    bounds: Iterable[UndeclaredBound], installed: Mapping[str, str], chosen: Mapping[str, str] | None = None
) -> tuple[Constraint, ...]:
    """What `bounds` ask for over a base (versions by name), with the packages that are `chosen` to be added.

    What a base has itself in another version is left as it is.
    """
    present = {**installed, **(chosen or {})}
    return tuple(
        Constraint(bound.package, bound.versions, bound.why)
        for bound in bounds
        if bound.holds(present)
        and (bound.package not in installed or satisfies(installed[bound.package], bound.versions))
    )


def _meets(requirement: Requirement, present: Mapping[str, str]) -> bool:
    """Whether that is installed; a framework under any of its names, a vendor's pre-release as the release."""
    name = canonicalize_name(requirement.name)
    framework = knowledge().framework_of(name)
    names = [
        distribution
        for distribution in present
        if distribution == name or (framework is not None and framework.is_variant(distribution))
    ]
    versions = [found for name in names if (found := valid_version(present[name])) is not None]
    return any(requirement.specifier.contains(version.base_version, prereleases=True) for version in versions)


def _bound(file: TomlFile, table: Any, prefix: str) -> UndeclaredBound:
    where = prefix.removesuffix(".")
    if not isinstance(table, dict):
        file.fail(where, "should be a table: [[bound]]")
    file.check_keys(table, _KEYS, prefix)
    texts: dict[str, str] = {}
    for key in _KEYS:
        if key not in table:
            file.fail(where, f"has no `{key}`")
        if key != "when":
            texts[key] = file.get(table, key, str, prefix)
            if not texts[key].strip():
                file.fail(f"{prefix}{key}", "is empty")
    if not _NAME.fullmatch(texts["package"]):
        file.fail(f"{prefix}package", f"should be a normalized name (PEP 503), not {texts['package']!r}")
    when = file.get_texts(table, "when", prefix)
    if not when:
        file.fail(f"{prefix}when", "is empty: a bound that always holds belongs to the package")
    try:
        SpecifierSet(texts["versions"])
        for line in when:
            Requirement(line)
        date.fromisoformat(texts["date"])
    except (InvalidSpecifier, InvalidRequirement, ValueError) as error:
        file.fail(where, str(error).splitlines()[0])
    return UndeclaredBound(when=when, **texts)
