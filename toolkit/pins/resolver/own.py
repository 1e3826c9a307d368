"""The GPU frameworks that a lock adds itself: they stay as the lock has them, and what it adds beside them fits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.pins.lock.protected import unfit_companions
from toolkit.pins.resolver.constraints import Constraint
from toolkit.recipes.architectures import lock_command
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolkit.pins.bases.facts import BaseFacts
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.lock.upgrade import Upgrade
    from toolkit.pins.resolver.resolve import Request, Resolution
    from toolkit.pins.resolver.sources import Sources


def held_frameworks(
    earlier: Lock | None, facts: BaseFacts, packages: Iterable[str], upgrade: Upgrade, exclude_newer: str | None
) -> tuple[Constraint, ...]:
    """The frameworks and GPU libraries that `earlier` added, each in its version.

    None of them if one is to be upgraded or another version is asked for, or if the base or the day changed: they
    belong together.
    """
    if earlier is None or not _same_question(earlier, facts, exclude_newer):
        return ()
    pins = [pin for pin in earlier.own.pins if pin.name not in facts.target.installed]
    asked = {canonicalize_name(found.name): found for found in map(Requirement, packages)}
    for pin in pins:
        line = asked.get(canonicalize_name(pin.name))
        if not upgrade.keeps(pin.name) or (line and (line.url or not satisfies(pin.version, str(line.specifier)))):
            return ()
    return tuple(Constraint(pin.name, f"=={pin.version}", f"{pin.why}, as it is locked") for pin in pins)


def _same_question(earlier: Lock, facts: BaseFacts, exclude_newer: str | None) -> bool:
    base, target = earlier.base, facts.target
    there = (base.bootstrap, base.python, base.architecture, earlier.exclude_newer)
    return there == (facts.base.bootstrap, target.python, target.architecture, exclude_newer)


def resolve_own(
    choose: Callable[[Request], tuple[Request, Resolution, Sources]], asked: Request, recipe: str
) -> tuple[Request, Resolution, Sources]:
    """What `choose` resolves, with companions that fit the frameworks which it adds.

    `recipe` is its name. Raises as `choose` does, with the way to change a framework that the earlier lock holds.
    """
    try:
        answer = choose(asked)
    except CheckFailed as error:
        held = [bound for bound in asked.held if bound.line in error.message and knowledge().framework_of(bound.name)]
        if held:
            names = " ".join(bound.name for bound in held)
            again = f"{lock_command(recipe, asked.target.architecture)} --upgrade {names}"
            way = f"`{again}` lets it change: add packages with --no-lock before."
            error.fix = f"{error.fix}\n{way}" if error.fix else way
        raise
    added = {package.name: package.version for package in answer[1].packages}
    unfit = unfit_companions(asked.target, knowledge(), added)
    if not unfit:
        return answer
    fitting = tuple(Constraint(bound.name, bound.specifier, bound.why) for bound in unfit)
    frameworks = tuple(
        Constraint(name, f"=={version}", "the lock")
        for name, version in added.items()
        if knowledge().framework_of(name) is not None
    )
    try:
        return choose(replace(asked, held=(*asked.held, *frameworks, *fitting)))
    except CheckFailed as error:
        if error.code != "requirements-conflict":
            raise
        return answer  # the recipe asks for that version; a note of the lock says so
