"""Why a version is not newer, in terms that users understand."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.pins.lock.model import EARLIER, PREFERRED, Held
from toolkit.pins.resolver.constraints import Constraint, active_requirements
from toolkit.pins.resolver.question import Question, ask, compile_lines
from toolkit.pins.resolver.resolve import Request, first_question
from toolkit.pins.resolver.working import why_refused
from toolkit.support.errors import ProgramFailed
from toolkit.support.parallel import parallel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.resolver.resolve import Resolution

SPECIFIER = r"(?:[<>=!~]=?=?[^\s,<>=!~]+,?)*"
DEPENDS = re.compile(
    rf"([a-z0-9][a-z0-9._-]*)(?:\[[^\]]*\])?({SPECIFIER}) depends? on (?:one of: )?([a-z0-9][a-z0-9._-]*)({SPECIFIER})"
)
_LONGEST_PROOF = 300
_AT_ONCE = 4
_TIMEOUT_SECONDS = 60.0  # to find a reason, which is not needed to build an image


def find_held(uv: Uv, request: Request, resolution: Resolution) -> tuple[Held, ...]:
    """The packages that are added in a version that is not the newest, each with the reason."""
    ours = {package.name: package.version for package in resolution.packages if not package.url}
    latest = newest_versions(uv, first_question(request), ours)
    behind = [name for name, version in sorted(ours.items()) if _is_newer(latest.get(name), version)]
    patient = replace(uv, patience=_TIMEOUT_SECONDS)
    reasons = parallel(lambda name: _why_not_newer(patient, request, resolution, name, latest[name]), behind, _AT_ONCE)
    return tuple(Held(name, ours[name], latest[name], because) for name, because in zip(behind, reasons, strict=True))


def _is_asked_for(name: str, request: Request) -> bool:
    return any(canonicalize_name(Requirement(line).name) == name for line in request.packages)


def _is_newer(candidate: str | None, version: str | None) -> bool:
    return candidate is not None and version is not None and Version(candidate) > Version(version)


def newest_versions(uv: Uv, question: Question, names: Iterable[str]) -> dict[str, str]:
    """The newest release of each package for the question's Python and platform."""
    asked = replace(question, packages=tuple(sorted(names)), constraints=(), only_binary=())
    if not asked.packages:
        return {}
    done = compile_lines(uv, asked, "--no-deps", "--no-annotate")
    found: dict[str, str] = {}
    for line in done.stdout.splitlines() if done.ok else []:
        name, equals, version = line.partition("==")
        if equals:
            found[canonicalize_name(name)] = version.split()[0]
    return found


def _why_not_newer(uv: Uv, request: Request, resolution: Resolution, name: str, newest: str) -> str:
    for line in request.packages:
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) == name and not satisfies(newest, str(requirement.specifier)):
            return f"the recipe requires {requirement.name}{requirement.specifier}"
    version = next(package.version for package in resolution.packages if package.name == name)
    if f"{name}=={version}" in request.listed:
        return PREFERRED
    question = first_question(request)
    hard = request.constraints()
    # The requirements of the newer release explain more than those on the package itself.
    others = question.under(constraint.line for constraint in hard if constraint.name != name)
    framework = question.packages[len(request.packages) :]
    try:
        alone = ask(uv, others.asking((f"{name}=={newest}", *framework)), again=True)
        if alone.proof is not None:
            return _sentence(alone.proof, name, request)
        if own := [
            constraint for constraint in hard if constraint.name == name and not satisfies(newest, constraint.specifier)
        ]:
            return _asks(own[0])
        if barred := _who_bars(uv, request, others, resolution, name, newest):
            return barred
        # All of them may take the resolver long: only direct requirements are worth that.
        together = question.asking((*question.packages, f"{name}=={newest}"))
        answer = ask(uv, together, again=True) if _is_asked_for(name, request) else alone
    except ProgramFailed:
        # The resolver tried an old release that cannot be read. The lock does not need it.
        return "newer ones conflict with the other packages"
    if answer.proof is not None:
        return _sentence(answer.proof, name, request)
    if f"{name}=={version}" in request.prefer:
        return why_refused(uv, request, name, newest) or EARLIER
    older = [
        f"{package.name} to {answer.installed[package.name]}"
        for package in resolution.packages
        if not package.url and _is_newer(package.version, answer.installed.get(package.name))
    ]
    if older:
        return f"newer ones would downgrade {' and '.join(older)}"
    replaced = {package.name for package in resolution.packages if package.replaces}
    moved = [f"{removed} {version}" for removed, version in sorted(answer.removed.items()) if removed not in replaced]
    if moved:
        return f"newer ones would replace the base's {' and '.join(moved)}"
    return "newer ones conflict with the other packages, or have no file for this image"


def _who_bars(
    uv: Uv, request: Request, question: Question, resolution: Resolution, name: str, newest: str
) -> str | None:
    """Which of those that need a package does not take its newest release. uv has already read all of it."""
    needed_by = next(package.required_by for package in resolution.packages if package.name == name)
    target = question.target
    for there in (target.installed[needing] for needing in needed_by if needing in target.installed):
        for requirement in active_requirements(there.requires, target.environment(), there.extras):
            if canonicalize_name(requirement.name) == name and not satisfies(newest, str(requirement.specifier)):
                return f"{there.name} {there.version} in the base requires {name}{requirement.specifier}"
    pins = {
        package.name: f"{package.name}=={package.version}"
        for package in resolution.packages
        if package.name in needed_by
    }
    proof = ask(uv, question.asking((f"{name}=={newest}", *pins.values())), again=True).proof if pins else None
    if barred := named_bar(proof or "", pins, name, newest):
        return barred
    need = conflicting_need(proof or "", request)
    return f"with newer ones {need[0]} needs {need[1]}; {stands(need[2], request.target)}" if need else None


def named_bar(proof: str, pins: Mapping[str, str], name: str, newest: str) -> str | None:
    """Who of `pins` (lines by name) asks in a proof for versions of `name` that the newest is none of."""
    for found in DEPENDS.finditer(proof):
        who, _, what, said = found.groups()
        specifier = said.rstrip(".,")
        # Of several that would do, the one that is listed first asks for nothing.
        is_choice = proof[: found.start(3)].endswith("one of: ")
        if who in pins and what == name and not is_choice and not satisfies(newest, specifier):
            return f"{pins[who].replace('==', ' ')} requires {name}{specifier}"
    return None


def _asks(constraint: Constraint) -> str:
    return f"{constraint.by} requires {constraint.line}" if constraint.by.endswith("in the base") else constraint.by


def _sentence(proof: str, name: str, request: Request) -> str:
    """A resolver's proof as one sentence: what the newer one needs, and what conflicts with it."""
    found = conflicting_need(proof, request)
    if found is None:
        return f"output of the resolver: {shortened(proof)}"
    who, need, against = found
    through = "newer ones need" if who == name else f"newer ones require {who}, which needs"
    return f"{through} {need}; {stands(against, request.target)}"


def shortened(proof: str) -> str:
    """The beginning of a resolver's proof."""
    return f"{proof[:_LONGEST_PROOF]}…" if len(proof) > _LONGEST_PROOF else proof.rstrip(".")


def conflicting_need(proof: str, request: Request) -> tuple[str, str, Constraint] | None:
    """(who, what it needs, the conflicting constraint) of the last dependency in a proof that a constraint refuses."""
    by_name: dict[str, list[Constraint]] = {}
    for constraint in request.constraints():
        by_name.setdefault(constraint.name, []).append(constraint)
    lines = {constraint.line for found in by_name.values() for constraint in found}
    for who, _, what, said in reversed(DEPENDS.findall(proof)):
        specifier = said.rstrip(".,")
        there = request.target.installed.get(what)
        fulfilled = there is not None and satisfies(there.version, specifier)
        if specifier and what in by_name and f"{what}{specifier}" not in lines and not fulfilled:
            exact = (
                constraint
                for constraint in by_name[what]
                if there is not None and constraint.specifier == f"=={there.version}"
            )
            return who, f"{what}{specifier}", next(exact, by_name[what][0])
    return None


def stands(constraint: Constraint, target: PythonTarget) -> str:
    """What a constraint is, as the second half of a sentence."""
    there = target.installed.get(constraint.name)
    if there is not None and constraint.specifier == f"=={there.version}":
        return f"the base has {there.version} (protected: {constraint.by})"
    return f"the base has {there.version}: {_asks(constraint)}" if there is not None else _asks(constraint)
