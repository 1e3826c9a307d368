"""Distributions that require another release of the framework than the installed one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from toolkit.inventory.contents.markers import marker_environment
from toolkit.inventory.knowledge.frameworks import is_prerelease, knowledge, satisfies
from toolkit.inventory.knowledge.in_use import failing_in_use
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.specifiers import SpecifierSet

    from toolkit.gpu.facts import FrameworkCase, FrameworkFacts, ImageCase
    from toolkit.inventory.knowledge.frameworks import Incompatibility

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


def companion_out_of_step(case: FrameworkCase) -> Iterator[Finding]:
    """A companion whose release belongs to another release of the framework (torchvision and torch, …)."""
    framework = case.framework
    refused = {rule.name for rule in _refused(framework)}
    for pairing in knowledge().pairings:
        companion = framework.companions.get(pairing.companion)
        if pairing.framework != framework.name or companion is None or companion.name in refused:
            continue
        version = framework.distribution.version
        wanted = pairing.wanted(version)
        if wanted is None or satisfies(companion.version, wanted):
            continue
        if is_prerelease(version) and is_prerelease(companion.version):
            continue  # a vendor builds both from snapshots: torch 2.6.0a0+df5bbc09d1.nv24.12 and torchvision 0.20.0a0
        yield Finding(
            "companion-out-of-step",
            Severity(pairing.severity),
            f"{companion.name} {companion.version} does not match {framework.title} {version}, which "
            f"needs {companion.name} {wanted}.",
            f"Pin {companion.name}{wanted} in the recipe or definition; "
            f"changing {framework.title} instead would break GPU support.",
        )


def incompatible_versions(case: FrameworkCase) -> Iterator[Finding]:
    """Versions that the metadata allows but the import refuses."""
    framework = case.framework
    for rule in _refused(framework):
        found = framework.companions[rule.name]
        yield Finding(
            "incompatible-versions",
            Severity.WARNING if rule.severity == "warning" else Severity.ERROR,
            f"{found.name} {found.version} beside {framework.title} {framework.distribution.version}: {rule.reason}.",
            f"Pin another version of {found.name} in the recipe or definition; keep the base's {framework.title}.",
        )


def fails_in_use(case: ImageCase) -> Iterator[Finding]:
    """Distributions that can be imported beside the framework, and fail when they are used."""
    told = set()
    for framework in case.image.frameworks:
        together = {name: found.version for name, found in framework.companions.items()}
        for problem, fix in failing_in_use({**together, framework.name: framework.distribution.version}):
            if problem not in told:
                told.add(problem)
                yield Finding("fails-in-use", Severity.WARNING, f"{problem}.", fix)


def _refused(framework: FrameworkFacts) -> Iterator[Incompatibility]:
    for rule in knowledge().incompatibilities:
        companion = framework.companions.get(rule.name)
        if (
            rule.other == framework.name
            and companion is not None
            and satisfies(companion.version, rule.versions)
            and satisfies(framework.distribution.version, rule.other_versions)
        ):
            yield rule


def requires_another(case: FrameworkCase) -> Iterator[Finding]:
    """A distribution that requires another version of the framework: one that pins it, or is compiled against it.

    A vendor's build (2.6.0a0+ecf3bae40a.nv25.01) counts as the release that it becomes.
    """
    framework = case.framework
    version = framework.distribution.version
    pairings = (pairing for pairing in knowledge().pairings if pairing.framework == framework.name)
    paired = {pairing.companion for pairing in pairings if pairing.wanted(version) is not None}
    release = _numbers(version)
    own = next(
        (interpreter for interpreter in case.image.inventory.interpreters if interpreter.path == framework.interpreter),
        None,
    )
    python, machine = own.version if own else "3", case.image.inventory.architecture or ""
    environment = {**marker_environment(python, machine), "extra": ""}
    for name, companion in sorted(framework.companions.items()):
        asking = companion.requires if name not in paired else ()
        lines = [line for line in asking if framework.known.is_required_in(line)]
        bounds = [bound for line in lines if (bound := _bound(line, environment))]
        unmet = [
            str(bound)
            for bound in bounds
            if (_is_pin(bound) or name in framework.compiled)
            and not (satisfies(version, str(bound)) or satisfies(release, str(bound)))
        ]
        if unmet:
            yield Finding(
                "companion-out-of-step",
                Severity.ERROR,
                f"{name} {companion.version} requires {framework.title} {unmet[0]}, and the image has {version}.",
                f"Pin the version of {name} that is made for {framework.title} {release} in the recipe or definition.",
            )


def _bound(line: str, environment: dict[str, str]) -> SpecifierSet | None:
    """What a Requires-Dist asks for; None if its marker is for another machine or an extra."""
    try:
        requirement = Requirement(line)
        holds = requirement.marker is None or requirement.marker.evaluate(environment)
    except (InvalidRequirement, UndefinedEnvironmentName, UndefinedComparison):
        return None
    return requirement.specifier if holds else None


def _is_pin(bound: SpecifierSet) -> bool:
    return any(clause.operator in ("==", "===") for clause in bound)


def part_refused(case: FrameworkCase) -> Iterator[Finding]:
    """A part of the framework in a version that the framework itself refuses."""
    framework = case.framework
    own, release = framework.distribution.name, _numbers(framework.distribution.version)
    for name, accepted in framework.build.accepts:
        part = framework.companions.get(name)
        if part is not None and not satisfies(_numbers(part.version), accepted):
            yield Finding(
                "companion-out-of-step",
                Severity.ERROR,
                f"{own} {release} refuses {name} {part.version} at import: it works with {name}{accepted}.",
                f"Pin {own} and {name} to one version: {own}=={release}, {name}=={release} or the newest before it.",
            )


def part_ignored(case: FrameworkCase) -> Iterator[Finding]:
    """A part of the framework that is not of the version of the one that leads them: the framework ignores it."""
    framework, follows = case.framework, case.framework.known.follows
    leader = framework.companions.get(follows.leader) if follows and framework.build.gpu else None
    if follows is None or leader is None or not satisfies(leader.version, follows.versions):
        return
    for part in sorted(framework.parts, key=lambda part: part.name):
        if _numbers(part.version) != _numbers(leader.version):
            yield Finding(
                "plugin-out-of-step",
                Severity.ERROR,
                f"{part.name} {part.version} does not have the version of {leader.name}, "
                f"{leader.version}: {framework.title} ignores it.",
                f"Pin {part.name}=={leader.version}.",
            )


def _numbers(version: str) -> str:
    match = _NUMBERS.match(version)
    return match.group() if match else version
