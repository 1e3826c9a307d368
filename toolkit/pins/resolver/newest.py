"""Find the newest release that fits, where a resolver chooses any that installs.

A resolver goes back with the package whose turn it is, and may take espnet of 2020 for an older pypinyin. So a direct
package that ends far behind its newest release is asked for at that release, and lowered step by step.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.lock.protected import violations
from toolkit.pins.resolver.explain import newest_versions
from toolkit.pins.resolver.keeping import name_of
from toolkit.pins.resolver.outdated import find_old_builds
from toolkit.pins.resolver.question import ask
from toolkit.pins.resolver.releases import list_releases, pages
from toolkit.pins.resolver.resolve import first_question
from toolkit.pins.resolver.working import resolve_working
from toolkit.support.errors import CheckFailed, ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolkit.pins.index.uv import Uv
    from toolkit.pins.index.wheels import File
    from toolkit.pins.resolver.question import Question
    from toolkit.pins.resolver.resolve import Request, Resolution
    from toolkit.pins.resolver.working import Resolver

_FAR = timedelta(days=365)
_OLD_SOURCE = timedelta(days=3 * 365)
_MAX_TRIES = 8
_MAX_AIMS = 3
_TIMEOUT_SECONDS = 60.0  # for one try: proving that nothing newer fits can take a resolver very long


def resolve_newest(
    uv: Uv, request: Request, *, fresh: bool = False, resolver: Resolver | None = None
) -> tuple[Request, Resolution]:
    """As `resolve_working`; a direct package far behind its newest release is moved to the newest that fits."""
    last, resolution = resolve_working(uv, request, fresh=fresh, resolver=resolver)
    free = [name for name in free_packages(request) if name in _versions(resolution)]
    latest = newest_versions(uv, first_question(last), _versions(resolution)) if free else {}
    for name in free:
        ours = _versions(resolution)
        asked = replace(request, learned=last.learned, aims=last.aims)
        newest = _newest_allowed(uv, asked, name, latest.get(name, ours[name]))
        if newest and _is_far_behind(uv, asked, resolution, name, newest):
            last, resolution = _moved(uv, asked, name, ours, newest, resolver) or (last, resolution)
    return last, replace(resolution, notes=(*resolution.notes, *_old_sources(uv, last, resolution)))


def fitting_version(uv: Uv, request: Request, line: str) -> str | None:
    """The version that is locked where a requirement of the recipe leaves it open; None if that is no advice."""
    name = canonicalize_name(Requirement(line).name)
    packages = tuple(name if asked == line else asked for asked in request.packages)
    try:
        _, found = resolve_newest(uv, replace(request, packages=packages))
    except (CheckFailed, ProgramFailed):
        return None
    file = found.files.get(name)
    if file is None or is_old_source(file, _today(request)):
        return None
    if name in {build.name for build in find_old_builds(uv, request, found)}:
        return None
    return _versions(found)[name]


def _newest_allowed(uv: Uv, request: Request, name: str, latest: str) -> str | None:
    """The newest release that the recipe itself and what is known to work allow; None if they allow none."""
    lines = [
        Requirement(line) for line in (*request.packages, *(constraint.line for constraint in request.constraints()))
    ]
    specifiers = [line.specifier for line in lines if canonicalize_name(line.name) == name]

    def allowed(version: str) -> bool:
        return all(specifier.contains(version, prereleases=True) for specifier in specifiers)

    if allowed(latest):
        return latest
    found = (str(release.version) for release in list_releases(name, first_question(request), pages(uv)))
    return next(filter(allowed, found), None)


def _is_far_behind(uv: Uv, request: Request, resolution: Resolution, name: str, newest: str) -> bool:
    def files() -> dict[Version, File]:
        return {release.version: release.file for release in list_releases(name, first_question(request), pages(uv))}

    return is_far_behind(_versions(resolution)[name], newest, resolution.files.get(name), files)


def is_far_behind(version: str, newest: str, file: File | None, files: Callable[[], Mapping[Version, File]]) -> bool:
    """Whether further questions are worthwhile: an older major version, a source distribution, or a year.

    `files` are those of every release; they are asked for only where the time decides.
    """
    ours, theirs = Version(version), Version(newest)
    if theirs <= ours:
        return False
    if theirs.major > ours.major or file is None or not file.is_wheel:
        return True
    last = files().get(theirs) if file.uploaded else None
    return bool(file.uploaded and last and last.uploaded and last.uploaded - file.uploaded > _FAR)


def is_old_source(file: File, today: datetime) -> bool:
    """Whether it is a source distribution that may not build any more: it is older than three years."""
    return not file.is_wheel and file.uploaded is not None and today - file.uploaded > _OLD_SOURCE


def newest_that_fits(uv: Uv, request: Request, name: str, chosen: Mapping[str, str], newest: str) -> str | None:
    """A newer release than the chosen one that goes with everything else; None if there is none.

    Asked for is the newest release, then any newer than the chosen: most often the answer to that is no, and all is
    said. Else the releases between are halved. No other package of the recipe may become older for it, and none may
    lose the version that the recipe prefers.
    """
    patient = replace(uv, patience=_TIMEOUT_SECONDS)
    question = first_question(request)
    others = [
        f"{other}>={Version(chosen[other]).public}" for other in sorted(_others(request, name)) if chosen.get(other)
    ]
    others += [pin for pin in sorted(request.listed) if chosen.get(name_of(pin)) == pin.partition("==")[2]]

    def found(specifier: str) -> str | None:
        """Which version of the package fits together with everything else; None if none does."""
        asked = question.asking((*question.packages, f"{name}{specifier}"))
        try:
            answer = ask(patient, asked.under([*asked.constraints, *others]), again=True)
        except ProgramFailed:
            return None
        return answer.installed.get(name)

    if best := found(f"=={newest}"):
        return best
    best = found(f">{chosen[name]}")
    if best is None:
        return None
    between = _between(uv, question, name, best, newest)
    for _ in range(_MAX_TRIES):
        if not between:
            break
        middle = between[len(between) // 2]
        if better := found(f">={middle},<{newest}"):
            best = better
            between = [version for version in between if version > Version(better)]
        else:
            between = [version for version in between if version < middle]
    return best


def _is_as_good(request: Request, name: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether what else the recipe asks for is as new as it was."""
    together = [other for other in _others(request, name) if before.get(other) and now.get(other)]
    return all(Version(now[other]) >= Version(before[other]) for other in together)


def _others(request: Request, name: str) -> set[str]:
    """The requirements of the recipe except `name`."""
    return {str(canonicalize_name(Requirement(line).name)) for line in request.packages} - {name}


def _between(uv: Uv, question: Question, name: str, low: str, high: str) -> list[Version]:
    """The releases newer than `low` and older than `high`, oldest first."""
    found = (release.version for release in list_releases(name, question, pages(uv)))
    return sorted(version for version in found if Version(low) < version < Version(high))


def _moved(
    uv: Uv, request: Request, name: str, chosen: Mapping[str, str], newest: str, resolver: Resolver | None
) -> tuple[Request, Resolution] | None:
    """Resolve again with the newest release that fits; None if that is no improvement."""
    for _ in range(_MAX_AIMS):
        better = newest_that_fits(uv, request, name, chosen, newest)
        if better is None:
            return None
        try:
            last, resolution = resolve_working(
                uv, replace(request, aims=(*request.aims, f"{name}=={better}")), resolver=resolver
            )
        except (CheckFailed, ProgramFailed):
            return None
        found = _versions(resolution)
        if found.get(name) == better:
            spoilt = violations(last.target, last.protected, knowledge(), found)
            return None if spoilt or not _is_as_good(request, name, chosen, found) else (last, resolution)
        if len(last.learned) == len(request.learned):
            return None
        # It is one that does not work over this base: what was learned of it counts for the next aim.
        request = replace(request, learned=last.learned)
    return None


def _versions(resolution: Resolution) -> dict[str, str]:
    return {package.name: package.version for package in resolution.packages if not package.url}


def free_packages(request: Request) -> list[str]:
    """The direct packages whose version is left to ctk: no exact version, no address, none of an earlier lock."""
    kept = set(map(name_of, request.prefer))
    found: dict[str, None] = {}
    for requirement in map(Requirement, request.packages):
        name = canonicalize_name(requirement.name)
        exact = any(
            clause.operator in ("==", "===") and not clause.version.endswith(".*") for clause in requirement.specifier
        )
        if not requirement.url and not exact and name not in kept:
            found[name] = None
    return list(found)


def _old_sources(uv: Uv, request: Request, resolution: Resolution) -> Iterator[str]:
    """A note for each old source distribution where a newer release is there."""
    old = {name: file for name, file in sorted(resolution.files.items()) if is_old_source(file, _today(request))}
    ours = _versions(resolution)
    latest = newest_versions(uv, first_question(request), ours) if old else {}
    for name, file in old.items():
        if name in ours and Version(latest.get(name, ours[name])) > Version(ours[name]) and file.uploaded:
            yield (
                f"{name} {ours[name]} is a source distribution of {file.uploaded.year}, which may not build; "
                f"the newest release is {latest[name]}"
            )


def _today(request: Request) -> datetime:
    day = request.exclude_newer
    return datetime.fromisoformat(day[:10]).replace(tzinfo=timezone.utc) if day else datetime.now(timezone.utc)
