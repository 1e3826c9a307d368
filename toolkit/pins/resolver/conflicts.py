"""Why some packages conflict over a base, and what to change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.inventory.knowledge.names import names
from toolkit.pins.resolver.explain import SPECIFIER, conflicting_need, newest_versions, shortened, stands
from toolkit.pins.resolver.newest import fitting_version
from toolkit.pins.resolver.outdated import bound_release
from toolkit.pins.resolver.pythons import PythonBound
from toolkit.pins.resolver.question import Question, ask, missing_package
from toolkit.pins.resolver.resolve import Conflict, Request, first_question
from toolkit.recipes.preference import by_preference
from toolkit.support.errors import CheckFailed, WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.resolver.constraints import Constraint
    from toolkit.pins.resolver.outdated import OldBuild
    from toolkit.recipes.model import Base

_MAX_BASES = 3  # that a message names
_NO_VERSION = re.compile(rf"there (?:is|are) no versions? of ([a-z0-9._-]+)({SPECIFIER})")
_OTHER_PYTHON = re.compile(
    rf"(?:requested|current) Python version \([^)]*\) does not satisfy Python[^ ]+ and "
    rf"([a-z0-9._-]+)(?:\[[^\]]*\])?({SPECIFIER}) depends on Python({SPECIFIER})"
)
_NO_WHEEL = re.compile(
    rf"(?:all versions of )?([a-z0-9][a-z0-9._-]*)({SPECIFIER})? ha(?:s|ve) no "
    r"(?:wheels with a matching \w+(?: \w+)? tag|usable wheels)"
)


def explain_conflict(uv: Uv, request: Request, conflict: Conflict, bases: Sequence[Base]) -> CheckFailed | WrongInput:
    """The smallest set of requirements that conflict, and what to change."""
    if (missing := missing_package(conflict.proof)) is not None:
        elsewhere = names().strangers.get(missing)
        if index := next((index for index in request.indexes if missing in index.packages), None):
            return WrongInput(
                f"there is no package {missing} on the index {index.name}: {index.url}",
                fix="Correct `url` or `packages` of this [[index]].",
                code="no-such-package",
            )
        return WrongInput(
            f"there is no package {missing} on the index",
            fix=elsewhere.way
            if elsewhere and elsewhere.way
            else "Check the spelling: the name for `pip install` can differ from the name for `import`.",
            code="no-such-package",
        )
    if impossible := _no_such_version(uv, request, conflict):
        return impossible
    packages, constraints = smallest_conflict(uv, request, conflict)
    if (dead := _without_release(request, constraints)) is not None:
        return _says_no_release(dead, packages)
    proof = ask(
        uv, conflict.question.asking(packages).under(constraint.line for constraint in constraints), again=True
    ).proof
    need = conflicting_need(proof or conflict.proof, request)
    recorded = conflict.question.packages[len(request.packages) :]
    rows = [f"  {line}  (the recipe)" for line in packages] + [
        f"  {constraint.line}  ({constraint.by})" for constraint in constraints
    ]
    rows += [f"  {line}  (recorded for the base)" for line in recorded]
    words = f"\n{need[0]} needs {need[1]}; {stands(need[2], request.target)}" if need else ""
    bound = next((constraint for constraint in constraints if isinstance(constraint, PythonBound)), None)
    reason = bound.by if bound else unavailable(proof or conflict.proof, request.target)
    if (bound or not need) and reason:
        if len(packages) == 1 and not recorded and all(isinstance(found, PythonBound) for found in constraints):
            way = (
                f"A base with Python {bound.requires} fits (`ctk bases`)." if bound else way_to(proof or conflict.proof)
            )
            return CheckFailed(
                f"{packages[0]} is not available for this base: {reason}",
                fix=_ways_out(uv, request, packages, None, bases, way),
                code="requirements-conflict",
            )
        words = f"\n{reason}"
    elif not need:
        words = f"\nOutput of the resolver: {shortened(proof or conflict.proof)}"
    return CheckFailed(
        "the requirements conflict:\n" + "\n".join(rows) + words,
        fix=_ways_out(uv, request, packages, need, bases),
        code="requirements-conflict",
    )


def _without_release(request: Request, constraints: Iterable[Constraint]) -> Constraint | None:
    """The package without any release that works with this base (`undeclared.toml`), if it causes the conflict."""
    return next(
        (constraint for constraint in constraints if constraint in request.learned and constraint.specifier == "<0"),
        None,
    )


def _says_no_release(dead: Constraint, packages: Sequence[str]) -> CheckFailed:
    asked = [canonicalize_name(Requirement(line).name) for line in packages]
    verb = "needs" if len(asked) == 1 else "need"
    needs = "" if dead.name in asked else f"{' and '.join(packages)} {verb} {dead.name}, and "
    return CheckFailed(
        f"{needs}{dead.by}",
        fix=f"Drop {' or '.join(asked)} from the recipe, or choose another base (`ctk bases`).",
        code="requirements-conflict",
    )


def unavailable(proof: str, target: PythonTarget) -> str | None:
    """The package without a file for the Python or platform of the base, according to a proof."""
    has = f"the base has Python {target.python} on {target.architecture}"
    if found := _OTHER_PYTHON.search(proof):
        return f"{found[1]}{found[2]} needs Python {found[3].rstrip('.,')}, but {has}"
    if found := _NO_WHEEL.search(proof):
        return f"{found[1]}{found[2] or ''} has only wheels for other Pythons or platforms, and no source; {has}"
    return None


def way_to(proof: str) -> str | None:
    """Where to find a file of a package that `unavailable` reports."""
    if found := _OTHER_PYTHON.search(proof):
        return f"A base with Python {found[3].rstrip('.,')} fits (`ctk bases`)."
    if found := _NO_WHEEL.search(proof):
        return f"Its sources may be in a repository: `{found[1]} @ git+https://HOST/PATH@COMMIT` builds them."
    return None


def _no_such_version(uv: Uv, request: Request, conflict: Conflict) -> CheckFailed | None:
    for line in request.packages:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if not requirement.specifier or not re.search(rf"(?:of|require) {re.escape(name)}\b", conflict.proof):
            continue
        question = Question(
            conflict.question.target, (line,), exclude_newer=request.exclude_newer, indexes=request.indexes
        )
        alone = ask(uv, question, again=True)
        if alone.proof and (match := _NO_VERSION.search(alone.proof)) and match[1] == name:
            newest = newest_versions(uv, conflict.question, [name]).get(name)
            return CheckFailed(
                f"{name} has no release {requirement.specifier} for Python {request.target.minor}"
                + (f"; the newest is {newest}" if newest else ""),
                fix=f"Request a release of {name} that exists.",
                code="no-such-version",
            )
    return None


def explain_newest(uv: Uv, request: Request, bases: Sequence[Base]) -> CheckFailed | None:
    """Why the newest release of what the recipe asks for does not fit; None if it fits.

    Where it does not, a resolver goes back through old releases, and what it says of those is not the reason.
    """
    question = first_question(request)
    names = [canonicalize_name(Requirement(line).name) for line in request.packages if not Requirement(line).url]
    newest = newest_versions(uv, question, [name for name in names if name not in request.target.installed])
    for line in request.packages:
        requirement = Requirement(line)
        version = newest.get(canonicalize_name(requirement.name))
        if version is None or not satisfies(version, str(requirement.specifier)):
            continue
        why_not = _why_not(uv, request, line, version)
        if why_not is None:
            continue
        reason, need = why_not
        return CheckFailed(
            f"{requirement.name} {version}, the newest release, does not fit this base: {reason}",
            fix=f"{_other_base([need], request, bases)}, or drop {requirement.name} from the recipe.",
            code="requirements-conflict",
        )
    return None


def explain_old_build(uv: Uv, request: Request, build: OldBuild, bases: Sequence[Base]) -> CheckFailed | None:
    """Why the release that was made for the base's framework does not fit; None if there is no such release."""
    bound = bound_release(uv, request, build)
    if bound is None:
        return None
    version = str(bound[0].version)
    what = f"made for {build.title} {build.framework.version}" if bound[1] else "the newest release"
    line = next(line for line in request.packages if canonicalize_name(Requirement(line).name) == build.name)
    newest = newest_versions(uv, first_question(request), [build.name]).get(build.name, version)
    reason, need = _why_not(uv, request, line, version) or (
        "it conflicts with the other packages of the recipe",
        None,
    )
    needs = [need, (_why_not(uv, request, line, newest) or ("", None))[1]]
    return CheckFailed(
        f"{build.name} {version}, {what}, does not fit this base: {reason}. Only older releases install: "
        f"{build.message}",
        fix=f"{_other_base(needs, request, bases)}, or drop {build.name} from the recipe. "
        f"{build.name}=={build.version} locks the old release anyway.",
        code="requirements-conflict",
    )


def _other_base(needs: Iterable[str | None], request: Request, bases: Sequence[Base]) -> str:
    """Which other base to start from: those of the catalogue that fit one of `needs`, else what the first one says."""
    known = [need for need in needs if need is not None]
    fitting = dict.fromkeys(name for need in known for name in fitting_bases(need, bases))
    with_it = next(
        (f"with {version}" for version in known[:1] if Requirement(version).name in request.target.installed),
        "that fits",
    )
    other = f"Another base fits: {', '.join(fitting)}. " if fitting else ""
    return f"{other}Start from a base {with_it} (`ctk bases`)"


def _why_not(uv: Uv, request: Request, line: str, version: str) -> tuple[str, str | None] | None:
    """Why a release of what a line of the recipe asks for does not fit the base, and what it needs; None: it fits."""
    question, requirement = first_question(request), Requirement(line)
    framework = question.packages[len(request.packages) :]
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    proof = ask(uv, question.asking((f"{requirement.name}{extras}=={version}", *framework)), again=True).proof
    if proof is None:
        return None
    need = conflicting_need(proof, request)
    if need is None:
        return unavailable(proof, request.target) or f"output of the resolver: {shortened(proof)}", None
    through = "needs" if need[0] == canonicalize_name(requirement.name) else f"requires {need[0]}, which needs"
    return f"it {through} {need[1]}; {stands(need[2], request.target)}", need[1]


def smallest_conflict(uv: Uv, request: Request, conflict: Conflict) -> tuple[list[str], list[Constraint]]:
    """The fewest requirements of the recipe, and the fewest constraints, that conflict."""
    question = conflict.question
    fixed = question.packages[len(request.packages) :]

    def possible(packages: Sequence[str], lines: Sequence[str]) -> bool:
        return ask(uv, question.asking([*packages, *fixed]).under(lines), again=True).possible

    packages = smallest(list(request.packages), lambda some: possible(some, question.constraints))
    proof = ask(uv, question.asking([*packages, *fixed]), again=True).proof or conflict.proof
    hard = request.constraints()
    named = [constraint for constraint in hard if re.search(rf"\b{re.escape(constraint.name)}\b", proof)]
    if possible(packages, [constraint.line for constraint in named]):
        named = list(hard)
    # Of two that say the same the earlier one is named: what is protected explains more than who asks for it.
    named.sort(key=lambda constraint: constraint.specifier != _pinned(request, constraint))
    by_line = {constraint.line: constraint for constraint in named}
    lines = smallest(list(by_line), lambda some: possible(packages, some))
    return packages, [by_line[line] for line in lines]


def _pinned(request: Request, constraint: Constraint) -> str:
    pin = request.protected.pin(constraint.name)
    return f"=={pin.version}" if pin else ""


def smallest(items: list[str], possible: Callable[[list[str]], bool]) -> list[str]:
    """A smallest subset of `items` that is not possible, where all of them together are not.

    QuickXplain (U. Junker, 2004): of n items, k of them guilty, it asks about k log n times.
    """

    def explain(background: list[str], added: bool, rest: list[str]) -> list[str]:
        if added and not possible(background):
            return []
        if len(rest) <= 1:
            return rest
        first, second = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        guilty_second = explain([*background, *first], bool(first), second)
        guilty_first = explain([*background, *guilty_second], bool(guilty_second), first)
        return [*guilty_first, *guilty_second]

    return sorted(explain([], True, items))


def _ways_out(
    uv: Uv,
    request: Request,
    packages: Sequence[str],
    need: tuple[str, str, Constraint] | None,
    bases: Sequence[Base],
    other: str | None = None,
) -> str:
    """What to change, best first; `other` is one more way."""
    ways = []
    question = first_question(request)
    for line in packages:
        requirement = Requirement(line)
        if requirement.specifier:
            name = canonicalize_name(requirement.name)
            others = [requirement for requirement in question.packages if requirement != line]
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            answer = ask(uv, question.asking([*others, f"{name}{extras}"]), again=True)
            if answer.possible and name in answer.installed:
                version = None if answer.missing_extras else fitting_version(uv, request, line)
                ways += [f"Another version fits: {name}{extras}=={version}."] if version else []
            elif answer.possible and name in request.target.installed:
                ways.append(f"The base's own fits: {name} {request.target.installed[name].version}.")
        if requirement.extras:
            bare = f"{requirement.name}{requirement.specifier}"
            others = [requirement for requirement in question.packages if requirement != line]
            if ask(uv, question.asking([*others, bare]), again=True).possible:
                ways.append(f"{requirement.name} fits without [{','.join(sorted(requirement.extras))}].")
    ways += [other] if other else []
    if need is not None and (fitting := fitting_bases(need[1], bases)):
        ways.append(f"Another base fits: {', '.join(fitting)}.")
    names = " or ".join(Requirement(line).name for line in packages)
    if not names:
        return "Start from another base (`ctk bases`)" + (", or use a later date." if request.exclude_newer else ".")
    if need is not None and Requirement(need[1]).name in request.target.installed and not ways:
        return f"{_other_base([need[1]], request, ())}, or drop {names} from the recipe."
    return " ".join([*ways, f"{'Or drop' if ways else 'Drop'} {names} from the recipe."])


def fitting_bases(need: str, bases: Iterable[Base]) -> list[str]:
    """The bases whose recorded framework fulfils a need such as `torch>=2.14`: the first few, best first."""
    requirement = Requirement(need)
    wanted = knowledge().framework_of(canonicalize_name(requirement.name))
    fitting = (
        base
        for base in bases
        if wanted is not None
        and not base.broken
        and base.framework is not None
        and base.framework_version is not None
        and wanted.is_variant(canonicalize_name(base.framework))
        and SpecifierSet(str(requirement.specifier)).contains(base.framework_version, prereleases=True)
    )
    return [base.name for base in by_preference(fitting)[:_MAX_BASES]]
