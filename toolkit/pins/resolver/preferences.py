"""Which versions a lock should have, which of them it cannot have, and why.

They come from the list that a recipe was written from (`[lock] prefer`), and from earlier locks: `ctk remove` gives
back the version that a package had before `ctk add` changed it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.pins.index.wheels import choose_file, supported_tags
from toolkit.pins.lock.model import Displaced
from toolkit.pins.resolver.constraints import active_requirements, soft_constraints
from toolkit.pins.resolver.explain import DEPENDS, SPECIFIER, conflicting_need, shortened, stands
from toolkit.pins.resolver.keeping import ask_preferring, name_of
from toolkit.pins.resolver.pythons import forbids
from toolkit.pins.resolver.releases import file_of, is_too_new, list_files, list_releases, takes_python
from toolkit.pins.resolver.resolve import first_question
from toolkit.recipes.requirements import exact_version
from toolkit.support.errors import ProgramFailed
from toolkit.support.parallel import parallel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.lock.upgrade import Upgrade
    from toolkit.pins.resolver.question import Question
    from toolkit.pins.resolver.resolve import Request, Resolution

    Versions = Mapping[str, Sequence[str]]  # by package, the most wanted first

_AT_ONCE = 8
_TIMEOUT_SECONDS = 60.0  # to find a reason, which is not needed to build an image


def listed_pins(lines: Iterable[str], target: PythonTarget) -> tuple[str, ...]:
    """`prefer` of a recipe as pins, those whose marker holds for the target."""
    found = {}
    for line in lines:
        requirement, version = Requirement(line), exact_version(line)
        if version and (requirement.marker is None or requirement.marker.evaluate(target.environment())):
            found[canonicalize_name(requirement.name)] = version
    return tuple(f"{name}=={version}" for name, version in sorted(found.items()))


def wanted_versions(
    listed: Iterable[str], earlier: Lock | None, upgrade: Upgrade, packages: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The versions that each package should have, the most wanted first, where the recipe requires `packages`.

    What the list says counts once: from then on the lock does, and `upgrade` changes it. So a line that the earlier
    lock has not seen comes first; then come the versions that a package had before other packages displaced them.
    A version that was only there because the recipe required exactly that, and does so no more, is not wanted.
    """
    by_name = {name_of(pin): pin for pin in listed}
    locked = {package.name: package.version for package in earlier.packages if not package.url} if earlier else {}
    displaced = {found.name: found.versions for found in earlier.displaced} if earlier else {}
    seen = set(earlier.preferred) if earlier else set()
    for line in earlier.asked if earlier else ():
        if line not in packages and exact_version(line) is not None:
            locked.pop(canonicalize_name(Requirement(line).name), None)
    wanted = {}
    for name in sorted(by_name.keys() | locked.keys() | displaced.keys()):
        if not upgrade.keeps(name):
            continue
        pin = by_name.get(name, "")
        is_new = bool(pin) and (pin not in seen or name not in locked)
        versions = [pin.partition("==")[2]] if is_new else []
        versions += [old for old in displaced.get(name, ()) if f"{name}=={old}" == pin or f"{name}=={old}" not in seen]
        versions += [locked[name]] if name in locked else []
        if versions:
            wanted[name] = tuple(dict.fromkeys(versions))
    return wanted


def impossible_pins(request: Request, wanted: Versions, directory: Path, earlier: Lock | None) -> dict[str, str]:
    """Why some of the wanted versions are not possible over the base, whatever else is installed: a reason by pin.

    `directory` keeps the pages of the index. What `earlier` has for the same Python and day is not looked up again.
    """
    question, target = first_question(request), request.target
    now = (target.python, target.architecture, request.exclude_newer)
    same = earlier and (earlier.base.python, earlier.base.architecture, earlier.exclude_newer) == now
    locked = earlier.versions if earlier and same else {}
    found: dict[str, str] = {}
    asked: list[tuple[str, str]] = []
    for name, version in ((name, version) for name, versions in wanted.items() for version in versions):
        if reason := _barred(request, name, version):
            found[f"{name}=={version}"] = reason
        elif locked.get(name) != version:
            asked.append((name, version))
    reasons = parallel(lambda pin: _unavailable(pin[0], pin[1], question, directory), asked, _AT_ONCE)
    return found | {f"{name}=={version}": why for (name, version), why in zip(asked, reasons, strict=True) if why}


def preferred_lines(
    request: Request, wanted: Versions, impossible: Collection[str], earlier: Lock | None, directory: Path
) -> Iterator[str]:
    """`prefer` of a request, in its order.

    If a version of the list is not possible, the next minor version comes next for which there is a wheel, since later
    ones drop what programs call (scipy 1.14 the `tol` of its solvers); then its major version, then the later.
    `directory` as in `impossible_pins`.
    """
    locked = earlier.versions if earlier else {}
    question = first_question(request)
    for name, versions in wanted.items():
        for version in versions:
            if (pin := f"{name}=={version}") not in impossible:
                yield pin
            if pin in request.listed and name not in locked and _barred(request, name, version) is None:
                yield from _next_minor(name, Version(version), question, directory) if pin in impossible else ()
                yield from (f"{name}>={version},<{Version(version).major + more}" for more in (1, 2))


def _next_minor(name: str, version: Version, question: Question, directory: Path) -> Iterator[str]:
    releases = list_releases(name, question, directory)
    later = [found.version for found in releases if found.version > version and found.file.is_wheel]
    if later and (nearest := min(later)).major == version.major:
        yield f"{name}>={version},<{nearest.major}.{nearest.minor + 1}"


def _barred(request: Request, name: str, version: str) -> str | None:
    """What the base, or the recipe itself, says against a version."""
    against = [
        constraint
        for constraint in request.constraints()
        if constraint.name == name and not satisfies(version, constraint.specifier)
    ]
    pin = request.protected.pin(name)
    if against:
        own = (constraint for constraint in against if pin and constraint.specifier == f"=={pin.version}")
        return stands(next(own, against[0]), request.target)
    for requirement in active_requirements(request.packages, request.target.environment()):
        if canonicalize_name(requirement.name) == name and (
            requirement.url or not satisfies(version, str(requirement.specifier))
        ):
            said = f" @ {requirement.url}" if requirement.url else requirement.specifier
            return f"the recipe requires {requirement.name}{said}"
    return None


_CHOICES = re.compile(
    rf"([a-z0-9][a-z0-9._-]*)({SPECIFIER}) depends? on one of: ((?:[a-z0-9][a-z0-9._-]*{SPECIFIER} )+)"
)


def _unavailable(name: str, version: str, question: Question, directory: Path) -> str | None:
    """Why the index has no release that an image can take without a compiler; None if it has, or does not tell."""
    releases = list_files(name, question, directory)
    if not releases:
        return None
    rows = releases.get(Version(version))
    target = question.target
    if rows is None:
        return "no index has this release"
    fitting = [file_of(row) for row in rows if takes_python(row, target.environment()["python_full_version"])]
    if not fitting:
        return f"it {forbids(rows[0]['requires-python'], target.python)}"
    if all(is_too_new(file, question) for file in fitting):
        return f"it was released after {question.exclude_newer}"
    chosen = choose_file(fitting, supported_tags(target))
    if chosen is None:
        return f"it has no file for Python {target.minor} on {target.architecture}"
    if not chosen.is_wheel and any(file.is_wheel for file in map(file_of, rows)):
        return f"it has no wheel for Python {target.minor} on {target.architecture}"
    return None


def find_displaced(
    uv: Uv, request: Request, resolution: Resolution, wanted: Versions, impossible: Mapping[str, str]
) -> tuple[Displaced, ...]:
    """The packages that are not in their most wanted version, each with the reason.

    What no list names is left out if the package is not in the image, or if the base or the recipe itself decides.
    """
    chosen = {package.name: package.version for package in resolution.packages}
    assumed = dict(pin.split("==") for pin in resolution.assumed)
    kept = [pin for pin in request.prefer if pin in {f"{name}=={version}" for name, version in chosen.items()}]
    patient = replace(uv, patience=_TIMEOUT_SECONDS)
    found = []
    for name, versions in wanted.items():
        there = request.target.installed.get(name)
        now = chosen.get(name) or assumed.get(name) or (there.version if there else None)
        missed = tuple(
            version for version in _before(versions, now) if _is_listed(request, name, version) or name in chosen
        )
        if not missed:
            continue
        pin = f"{name}=={missed[0]}"
        if reason := impossible.get(pin) or _barred(request, name, missed[0]):
            because = reason
        elif name in chosen:
            because = _conflict(patient, request, resolution, kept, pin)
        else:
            because = _not_added(request, name, now)
        if pin not in impossible or any(_is_listed(request, name, version) for version in missed):
            found.append(Displaced(name, missed, because))
    return tuple(found)


def _before(versions: Sequence[str], now: str | None) -> list[str]:
    """The versions that are more wanted than the one that is there."""
    found: list[str] = []
    for version in versions:
        if now is not None and satisfies(now, f"=={version}"):
            break
        found.append(version)
    return found


def _is_listed(request: Request, name: str, version: str) -> bool:
    return f"{name}=={version}" in request.listed


def _not_added(request: Request, name: str, now: str | None) -> str:
    """Why the lock has nothing to say about a listed package."""
    if name in request.target.aliases:
        pin = request.protected.pin(name)
        return pin.why if pin else "another package is used in its place"
    if now is None:
        return "no package of the recipe requires it"
    return "the base has it, and no package of the recipe requires another version"


def _conflict(uv: Uv, request: Request, resolution: Resolution, kept: Sequence[str], pin: str) -> str:
    """What else in the lock does not go with a version."""
    hard = replace(first_question(request), only_binary=resolution.only_binary)
    others = [line for line in (*kept, *request.aims) if name_of(line) != name_of(pin)]
    soft = [constraint.line for constraint in soft_constraints(request.target, request.protected)]
    chosen = [f"{package.name}=={package.version}" for package in resolution.packages if not package.url]
    framework = hard.packages[len(request.packages) :]
    everything = (*hard.packages, pin)
    unreadable = f"the requirements of {pin.replace('==', ' ')} cannot be read on this host"
    questions = [
        hard.asking((pin, *framework)),
        hard.asking(everything),
        # What is wanted explains more than what the resolver chose itself.
        hard.asking(everything).under([*hard.constraints, *others]),
        hard.asking(everything).under([*hard.constraints, *others, *soft]),
        hard.asking(everything).under([*hard.constraints, *(line for line in chosen if name_of(line) != name_of(pin))]),
    ]
    for question in questions:
        try:
            proof = ask_preferring(uv, question, again=True).proof
        except ProgramFailed:
            return unreadable
        if proof == unreadable:
            return proof
        if proof is not None and "cannot be read" not in proof:  # what uv tried instead is no reason
            return _reason(proof, request, pin, {package.name: package.version for package in resolution.packages})
    return "it conflicts with the other packages"


def _reason(proof: str, request: Request, pin: str, chosen: Mapping[str, str]) -> str:
    """A proof that a version does not fit as one sentence: who requires what, the nearest to the package first."""
    name, _, version = pin.partition("==")
    for match in DEPENDS.finditer(proof):
        who, _, what, said = match.groups()
        specifier = said.rstrip(".,")
        if proof[: match.start(3)].endswith("one of: "):
            continue  # others would do
        if what == name and who != name and specifier and not satisfies(version, specifier):
            there = request.target.installed.get(who)
            by = chosen.get(who) or (there.version if there else "")
            return f"{who} {by} requires {what}{specifier}".replace("  ", " ")
        if who == name and what in chosen and specifier and not satisfies(chosen[what], specifier):
            return f"it requires {what}{specifier}, and {what} {chosen[what]} is locked"
    for who, _, said in _CHOICES.findall(proof):
        choices = said.split()
        if all(name_of(choice) == name for choice in choices) and who in chosen:
            return f"{who} {chosen[who]} requires {' or '.join(choices)}"
    if (need := conflicting_need(proof, request)) is not None:
        who = "it" if need[0] == name else need[0]
        return f"{who} requires {need[1]}; {stands(need[2], request.target)}"
    return f"it conflicts with other packages: {shortened(re.sub(r' +', ' ', proof))}"
