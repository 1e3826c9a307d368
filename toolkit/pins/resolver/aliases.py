"""Several distributions install one module (OpenCV has four): which of them replaces the others in an image.

To the resolver the others are installed already, in the version of the one that replaces them. So whatever bound a
package puts on any of them holds for the one that is there, and a bound that does not hold is found as a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.version import Version

from toolkit.inventory.contents.model import Distribution
from toolkit.inventory.knowledge.frameworks import matches
from toolkit.pins.bases.target import valid_version
from toolkit.pins.lock.model import RECIPE
from toolkit.pins.lock.protected import Pin
from toolkit.pins.resolver.explain import newest_versions
from toolkit.pins.resolver.resolve import Conflict, Request, Resolution, first_question, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolkit.inventory.knowledge.frameworks import Knowledge, Variants
    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import LockedPackage

_MAX_ROUNDS = 8  # one for each group of variants that a list of packages can bring twice


@dataclass(frozen=True, slots=True)
class Alias:
    """`name` is not installed: `by` in `version` replaces it, without `lacks`."""

    name: str
    by: str
    version: str
    lacks: str | None = None


def base_aliases(target: PythonTarget, known: Knowledge) -> tuple[Alias, ...]:
    """The distributions that those of a base replace."""
    found: dict[str, Alias] = {}
    for group in known.variants:
        for there in sorted(name for name in target.installed if group.includes(name)):
            version = valid_version(target.installed[there].version)
            for name in group.distributions:
                stand = group.served_by(there, name) if "*" not in name and name not in target.installed else None
                if stand is not None and version is not None:
                    found.setdefault(name, Alias(name, there, version.public, stand.lacks))
    return tuple(found.values())


def with_aliases(request: Request, aliases: Iterable[Alias]) -> Request:
    """`request` over a target in which the aliases are installed, and stay."""
    by_name = {alias.name: alias for alias in aliases}
    if not by_name:
        return request
    installed = {name: Distribution(name, alias.version, "", "") for name, alias in by_name.items()}
    pins = tuple(
        Pin(name, alias.version, f"{alias.by} {alias.version} is used in its place") for name, alias in by_name.items()
    )
    protected = replace(
        request.protected,
        pins=(*request.protected.pins, *pins),
        forbidden=tuple(ban for ban in request.protected.forbidden if ban.name not in by_name),
    )
    target = replace(
        request.target,
        installed={**request.target.installed, **installed},
        aliases=request.target.aliases | installed.keys(),
    )
    return replace(request, target=target, protected=protected)


def resolve_variants(
    uv: Uv, request: Request, there: Iterable[Alias], known: Knowledge, *, fresh: bool = False
) -> tuple[Request, Resolution]:
    """Resolve `request` so that one variant of each module is added, if it can replace all requested ones.

    `there` are the aliases that `request` has already. Returns what was resolved in the end too. Raises as `resolve`.
    """
    resolution = resolve(uv, request, fresh=fresh)
    aliases, asked = list(there), dict(resolution.aliases)
    for _ in range(_MAX_ROUNDS):
        before = {package.name: package.required_by for package in resolution.packages}
        merged = _merged(uv, request, resolution, known)
        if merged is None:
            break
        request, resolution, more = merged
        aliases += more
        asked |= {alias.name: before[alias.name] for alias in more}
        who = {name for alias in more for name in before[alias.name]} | {*before.get(more[0].by, ())}
        resolution = _with_requirers(resolution, more[0].by, who, asked=RECIPE in who)
    return request, replace(resolution, notes=(*resolution.notes, *alias_notes(aliases, asked, known)))


def _merged(
    uv: Uv, request: Request, resolution: Resolution, known: Knowledge
) -> tuple[Request, Resolution, list[Alias]] | None:
    """The first group of which several are added, resolved again with one that replaces all; None if there is none."""
    added = {package.name: package.version for package in resolution.packages}
    for group in known.variants:
        members = sorted(name for name in added if group.includes(name) and name not in request.target.installed)
        for name in standing(group, members) if len(members) > 1 else ():
            others = [member for member in members if member != name]
            lacks = next((stand.lacks for other in others if (stand := group.served_by(name, other))), None)
            newest = added.get(name) or newest_versions(uv, first_question(request), [name]).get(name)
            # The newest that the one asks for may be too new for the other.
            for version in dict.fromkeys(
                filter(None, (newest, *sorted((added[other] for other in others), key=Version)))
            ):
                aliases = [Alias(other, name, version, lacks) for other in others]
                again = with_aliases(_requiring(request, name, version), aliases)
                try:
                    return again, resolve(uv, again), aliases
                except Conflict:
                    continue
    return None


def standing(group: Variants, members: Sequence[str]) -> list[str]:
    """The distributions of a group that can replace all of `members`, most preferred first."""
    concrete = dict.fromkeys((*members, *(name for name in group.distributions if "*" not in name)))
    return [
        name
        for stand in group.stands
        for name in concrete
        if matches(name, (stand.name,)) and all(name == member or group.served_by(name, member) for member in members)
    ]


def _requiring(request: Request, name: str, version: str) -> Request:
    """`request` with exactly this release of `name`."""
    pin = Pin(name, version, f"{name} replaces another distribution of the same module")
    protected = replace(request.protected, pins=(*request.protected.pins, pin))
    return replace(request, packages=(*request.packages, name), protected=protected)


def _with_requirers(resolution: Resolution, by: str, who: Iterable[str], *, asked: bool) -> Resolution:
    """Record who requires the replaced distributions as requirers of `by`; `asked`: the recipe, too."""

    def changed(package: LockedPackage) -> LockedPackage:
        required_by = {*package.required_by, *who} - (set() if asked else {RECIPE})
        return replace(package, required_by=tuple(sorted(required_by))) if package.name == by else package

    return replace(resolution, packages=tuple(map(changed, resolution.packages)))


def alias_notes(aliases: Iterable[Alias], asked: Mapping[str, Sequence[str]], known: Knowledge) -> Iterator[str]:
    """A sentence for each requested alias. `asked` names what requests it: packages, or RECIPE."""
    for alias in (alias for alias in aliases if asked.get(alias.name)):
        packages = sorted(set(asked[alias.name]) - {RECIPE})
        who = " and ".join([*(["the recipe"] if RECIPE in asked[alias.name] else []), *packages])
        group = known.variants_of(alias.by)
        yield "".join(
            (
                f"{alias.by} {alias.version} is used in place of {alias.name}, required by {who}",
                f": both install the module {group.module}" if group else "",
                f". It lacks {alias.lacks}" if alias.lacks else "",
                f". `pip check` reports {alias.name} as missing, which is harmless" if packages else "",
            )
        )
