"""The constraints of the resolver: the protected set, and the requirements among the base's distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.pins.bases.target import valid_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.inventory.contents.model import Distribution
    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.lock.protected import ProtectedSet


@dataclass(frozen=True, slots=True)
class Constraint:
    """One line for the resolver, and who asks for it, in words."""

    name: str
    specifier: str
    by: str

    @property
    def line(self) -> str:
        return f"{self.name}{self.specifier}"


def hard_constraints(target: PythonTarget, protected: ProtectedSet) -> tuple[Constraint, ...]:
    """Constraints that must always hold: the protected set, and what its members ask of their dependencies."""
    found = [Constraint(pin.name, f"=={pin.version}", pin.why) for pin in protected.pins if valid_version(pin.version)]
    found += [Constraint(bound.name, bound.specifier, bound.why) for bound in protected.bounds]
    # A pattern is no name to a resolver: `violations` looks for those afterwards.
    found += [Constraint(ban.name, "<0", ban.why) for ban in protected.forbidden if "*" not in ban.name]
    names = {pin.name for pin in protected.pins}
    found += satisfied_bounds(
        target, (distribution for distribution in target.installed.values() if distribution.name in names)
    )
    return _once(found)


def soft_constraints(target: PythonTarget, protected: ProtectedSet) -> tuple[Constraint, ...]:
    """What the other distributions of the base ask, kept where it can be: then `pip check` stays as good as it was."""
    found = [*hard_constraints(target, protected), *satisfied_bounds(target, target.installed.values())]
    for line in target.constraints:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name not in target.installed and requirement.specifier:
            found.append(Constraint(name, str(requirement.specifier), "the base's own constraint file"))
    return _once(found)


def satisfied_bounds(target: PythonTarget, distributions: Iterable[Distribution]) -> list[Constraint]:
    """The version bounds that `distributions` ask for and that the base fulfils today."""
    found = []
    for distribution in distributions:
        for requirement in active_requirements(distribution.requires, target.environment()):
            there = target.installed.get(canonicalize_name(requirement.name))
            version = valid_version(there.version) if there else None
            if version is None or not requirement.specifier or requirement.url:
                continue
            if requirement.specifier.contains(version, prereleases=True):
                found.append(
                    Constraint(
                        canonicalize_name(requirement.name),
                        str(requirement.specifier),
                        f"{distribution.name} {distribution.version} in the base",
                    )
                )
    return found


def active_requirements(
    lines: Iterable[str], environment: Mapping[str, str], extras: Iterable[str] = ()
) -> Iterator[Requirement]:
    """Those of `Requires-Dist` that count in `environment` with `extras`; what is no requirement at all is left out."""
    wanted = ["", *extras]
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None or any(
            requirement.marker.evaluate({**environment, "extra": extra}) for extra in wanted
        ):
            yield requirement


def broken_by(target: PythonTarget, chosen: Mapping[str, str]) -> list[Constraint]:
    """The bounds of base distributions that stay and that the versions in `chosen` no longer fulfil."""
    staying = (distribution for distribution in target.installed.values() if distribution.name not in chosen)
    return [
        bound
        for bound in satisfied_bounds(target, staying)
        if bound.name in chosen
        and not Requirement(bound.line).specifier.contains(Version(chosen[bound.name]), prereleases=True)
    ]


def _once(found: Iterable[Constraint]) -> tuple[Constraint, ...]:
    by_line: dict[str, Constraint] = {}
    for constraint in found:
        by_line.setdefault(constraint.line, constraint)
    return tuple(by_line[line] for line in sorted(by_line))
