"""The distributions of a base that must not change, from its content and ctk's data about frameworks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.inventory.contents.model import Distribution
from toolkit.inventory.knowledge.frameworks import matches, satisfies
from toolkit.pins.bases.target import valid_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolkit.inventory.knowledge.frameworks import Framework, Incompatibility, Knowledge
    from toolkit.pins.bases.target import PythonTarget

_OPPOSITE = {"<=": ">", ">=": "<", "<": ">=", ">": "<="}


@dataclass(frozen=True, slots=True)
class Pin:
    """A distribution that stays at this very version and build. `why` is its role in the base."""

    name: str
    version: str
    why: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The versions that fit the base: `specifier` as in PEP 440. `why` is a sentence without its full stop."""

    name: str
    specifier: str
    why: str


@dataclass(frozen=True, slots=True)
class Ban:
    """A distribution that must not be installed: it would overwrite the files of another one.

    `*` in `name` matches any characters, but never a distribution of the base.
    """

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class ProtectedSet:
    """The protected set: exact versions, bounds for other packages, and packages that must not be installed."""

    pins: tuple[Pin, ...] = ()
    bounds: tuple[Bound, ...] = ()
    forbidden: tuple[Ban, ...] = ()

    def pin(self, name: str) -> Pin | None:
        return next((pin for pin in self.pins if pin.name == name), None)


NOTHING_PROTECTED = ProtectedSet()


def protect(target: PythonTarget, known: Knowledge, whose: str = "the base") -> ProtectedSet:
    """The protected set of a base: its frameworks, their GPU libraries, and what is tied to them.

    `whose` names in the reasons what has them.
    """
    present = _frameworks(target, known)
    pins: dict[str, Pin] = {}
    bounds: list[Bound] = []
    for name, distribution in sorted(target.installed.items()):
        why, keep = _reason(name, present, known, whose)
        version = valid_version(distribution.version)
        if keep == "exact":
            pins[name] = Pin(name, distribution.version, why)
        elif keep == "major" and version is not None:
            bounds.append(Bound(name, f">={version.major},<{version.major + 1}", why))
    bounds += (bound for bound in _companions(present, known) if bound.name not in pins)
    told = {*pins, *(bound.name for bound in bounds)}
    bounds += [bound for bound in _refusals(pins, bounds, known) if bound.name not in told]
    return ProtectedSet(tuple(pins.values()), tuple(sorted(bounds, key=str)), tuple(_bans(target, known, whose)))


def protect_added(target: PythonTarget, known: Knowledge, added: Mapping[str, str]) -> ProtectedSet:
    """The same for the GPU frameworks that a lock adds (versions by name): all that the base's own set does not say."""
    whole = protect(_with(target, added), known, "the lock")
    pins = tuple(pin for pin in whole.pins if pin.name in added)
    frameworks = [pin.name for pin in pins if known.framework_of(pin.name) is not None]
    if not frameworks:
        return NOTHING_PROTECTED
    of_base = protect(target, known)
    said = {bound.name for bound in of_base.bounds} | {ban.name for ban in of_base.forbidden}
    variants = [group for group in known.variants if any(group.includes(name) for name in (pin.name for pin in pins))]
    return ProtectedSet(
        pins,
        tuple(bound for bound in whole.bounds if bound.name not in said),
        tuple(
            ban
            for ban in whole.forbidden
            if ban.name not in said and any(ban.name in group.distributions for group in variants)
        ),
    )


def unfit_companions(target: PythonTarget, known: Knowledge, added: Mapping[str, str]) -> tuple[Bound, ...]:
    """What of a plan does not fit a framework that it adds as well: indexes do not say it of each release."""
    present = {name: found for name, found in _frameworks(_with(target, added), known).items() if name in added}
    bounds = _companions(present, known)
    return tuple(bound for bound in bounds if bound.name in added and not satisfies(added[bound.name], bound.specifier))


def _with(target: PythonTarget, added: Mapping[str, str]) -> PythonTarget:
    come = {name: Distribution(name, version, "", "") for name, version in added.items()}
    return replace(target, installed={**target.installed, **come})


def _frameworks(target: PythonTarget, known: Knowledge) -> dict[str, tuple[Framework, str]]:
    """Each framework of the base by the name of the distribution that is there, with its version."""
    return {
        name: (framework, distribution.version)
        for name, distribution in sorted(target.installed.items())
        if (framework := known.framework_of(name)) is not None
    }


def _reason(
    name: str, present: Mapping[str, tuple[Framework, str]], known: Knowledge, whose: str
) -> tuple[str, str | None]:
    """Why a distribution of the base is protected, and how much of its version; (…, None) if it is not."""
    if name in present:
        return f"{whose}'s {present[name][0].title}", "exact"
    if known.is_gpu_library(name):
        return f"a GPU library of {whose}", "exact"
    kept = [(framework.title, keep) for framework, _ in present.values() if (keep := framework.welded_as(name))]
    if not kept:
        return "", None
    title, keep = min(kept, key=lambda pair: pair[1])  # "exact" sorts before "major"
    return (f"tied to {whose}'s {title}" if keep == "exact" else f"{title} was compiled for this major version"), keep


def _companions(present: Mapping[str, tuple[Framework, str]], known: Knowledge) -> Iterator[Bound]:
    for framework, version in present.values():
        for pairing in known.pairings:
            wanted = pairing.wanted(version) if pairing.framework == framework.name else None
            if wanted is None:
                continue
            refused = (
                rule.reason
                for rule in known.incompatibilities
                if (rule.name, rule.other) == (pairing.companion, framework.name)
                and satisfies(version, rule.other_versions)
            )
            why = next(refused, f"{framework.title} {version} needs {pairing.companion} {wanted}")
            yield Bound(pairing.companion, wanted, why)


def _refusals(pins: Mapping[str, Pin], bounds: Iterable[Bound], known: Knowledge) -> Iterator[Bound]:
    """What cannot be imported with a protected version, if one bound excludes it; `violations` finds the rest."""
    stays = {pin.name: pin.version for pin in pins.values()}
    # Of what is not recorded of a base, the series is known all the same: keras ==2.15.* goes with TensorFlow 2.15.
    stays |= {
        bound.name: bound.specifier[2:].removesuffix(".*") for bound in bounds if bound.specifier.startswith("==")
    }
    for rule in known.incompatibilities:
        operator = next((ours for ours in _OPPOSITE if rule.versions.startswith(ours)), None)
        refused = any(_is_other(name, version, rule, known) for name, version in stays.items())
        if refused and operator and "," not in rule.versions:
            yield Bound(rule.name, rule.versions.replace(operator, _OPPOSITE[operator]), rule.reason)


def _is_other(name: str, version: str, rule: Incompatibility, known: Knowledge) -> bool:
    """Whether this distribution is what `one.name` cannot be imported with."""
    framework = known.framework_of(name)
    return rule.other in (name, framework and framework.name) and satisfies(version, rule.other_versions)


def _bans(target: PythonTarget, known: Knowledge, whose: str) -> Iterator[Ban]:
    """The other variants of what the base has; one that is installed already is ignored."""
    groups = [(variant.title, variant.distributions) for variant in known.variants]
    for title, names in groups:
        there = sorted(name for name in target.installed if matches(name, names))
        for name in names if there else ():
            if name not in there:
                version = target.installed[there[0]].version
                yield Ban(name, f"{whose} has {title} as {there[0]} {version}, and {name} would overwrite its files")


def violations(
    target: PythonTarget,
    protected: ProtectedSet,
    known: Knowledge,
    added: Mapping[str, str],
    brought_by: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """What a resolver cannot see in a plan (versions by name): variants that overwrite each other, refused imports.

    `brought_by` names who asks for each.
    """
    found = []

    def listed(name: str) -> str:
        who = ", ".join((brought_by or {}).get(name, ()))
        return f"{name} (for {who})" if who else name

    for name, version in sorted(added.items()):
        bans = () if name in target.installed else protected.forbidden
        found += [f"{name} {version}: {ban.why}" for ban in bans if matches(name, (ban.name,))]
    there = {
        name: distribution.version for name, distribution in target.installed.items() if name not in target.aliases
    }
    together = {**there, **added}
    for group in known.variants:
        members = sorted(name for name in together if group.includes(name))
        if len(members) > 1 and any(name in added and name not in target.installed for name in members):
            said = any(matches(name, (ban.name,)) for name in members for ban in protected.forbidden)
            names = " and ".join(map(listed, members))
            found += [] if said else [f"{names} both install {group.module} and would overwrite each other"]
    for rule in known.incompatibilities:
        if rule.name in added and satisfies(added[rule.name], rule.versions):
            refused = any(_is_other(name, version, rule, known) for name, version in together.items())
            found += [rule.reason] if refused else []
    return found


def second_frameworks(
    target: PythonTarget, known: Knowledge, added: Mapping[str, str], brought_by: Mapping[str, Sequence[str]]
) -> list[str]:
    """Further GPU frameworks in a plan: each loads its own GPU libraries, and takes GPU memory.

    Except those without GPU code, and those that work next to any other.
    """
    there = [framework for framework in known.frameworks if any(map(framework.is_variant, target.installed))]
    found = []
    for name, version in sorted(added.items()):
        framework = known.framework_of(name)
        if framework is None or framework.beside_others or framework in there or framework.is_cpu_only(name):
            continue
        titles = [framework.title for framework in there if not framework.beside_others]
        if titles:
            who = ", ".join(brought_by.get(name, ()))
            found.append(
                f"{name} {version} (for {who}) is a second GPU framework next to {' and '.join(titles)} of the base"
            )
    return found


def other_builds(protected: ProtectedSet, known: Knowledge, added: Mapping[str, str]) -> list[str]:
    """The companions in a plan whose compiled parts were made for another build of the framework than the base's.

    The index holds them for its own builds only. Seen: torchvision 0.28.0 over torch 2.13.0+cpu, `import torchvision`
    fails with "operator torchvision::nms does not exist".
    """
    found = []
    for pairing in known.pairings:
        pin = protected.pin(pairing.framework)
        version = added.get(pairing.companion)
        build = pin.version.partition("+")[2] if pin else ""
        if pin is not None and build and version is not None and version.partition("+")[2] != build:
            found.append(
                f"{pairing.companion} {version} comes from an index that may not match {pin.name} {pin.version}. "
                f"Check that it can be imported; if not, install it from the index of the base's {pin.name}"
            )
    return found
