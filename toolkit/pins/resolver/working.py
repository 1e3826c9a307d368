"""Releases that install over a base but do not work there: find them, exclude them, and resolve again.

What a resolver does not see is in an extra's bound on the base's framework (`extra_bounds`), in no metadata at all
(`undeclared`), in an upper bound on Python (`pythons`), or in the age of a wheel (`numpy_abi`). Each becomes a
constraint like those of the base, so that a conflict and a lock can say it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.version import Version

from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.pins.index.metadata import read_requirements
from toolkit.pins.resolver.constraints import Constraint
from toolkit.pins.resolver.extra_bounds import find_extra_bound
from toolkit.pins.resolver.numpy_abi import built_for_numpy_1
from toolkit.pins.resolver.pythons import PythonBound, python_bounds
from toolkit.pins.resolver.releases import list_releases, pages
from toolkit.pins.resolver.resolve import first_question, resolve
from toolkit.pins.resolver.undeclared import constraints_over, undeclared_bounds
from toolkit.support.parallel import parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from toolkit.pins.index.uv import Uv
    from toolkit.pins.index.wheels import File
    from toolkit.pins.resolver.extra_bounds import ExtraBound
    from toolkit.pins.resolver.releases import Release
    from toolkit.pins.resolver.resolve import Request, Resolution

    T = TypeVar("T")
    Resolver = Callable[
        [Request, bool], tuple[Request, Resolution]
    ]  # the request, and whether the index must be asked afresh

_MAX_ROUNDS = 6
_AT_ONCE = 4


def resolve_working(
    uv: Uv, request: Request, *, fresh: bool = False, resolver: Resolver | None = None
) -> tuple[Request, Resolution]:
    """Choose versions without known problems; return the request with what was learned.

    `resolver` replaces `resolve`. Raises Conflict, whose request has learned that too, if there is no solution.
    """
    choose = resolver or (lambda asked, fresh: (asked, resolve(uv, asked, fresh=fresh)))
    asked = _learning(request, constraints_over(undeclared_bounds(), _installed(request)))
    last, resolution = choose(asked, fresh)
    notes: set[str] = set()
    for _ in range(_MAX_ROUNDS):
        learned, notes = _lessons(uv, asked, resolution)
        wiser = _learning(asked, learned)
        if len(wiser.learned) == len(asked.learned):
            break
        asked = wiser
        last, resolution = choose(asked, False)
    else:
        learned, notes = _lessons(uv, asked, resolution)
        notes |= {f"{bound.name} may not work: {bound.by}" for bound in learned}
    return last, replace(resolution, notes=tuple(sorted({*resolution.notes, *notes})))


def _lessons(uv: Uv, request: Request, resolution: Resolution) -> tuple[list[Constraint], set[str]]:
    """What keeps out the chosen releases that do not work, and a note for each that nothing older could replace."""
    chosen = {package.name: package.version for package in resolution.packages}
    undeclared = constraints_over(undeclared_bounds(), _installed(request), chosen)
    learned = [
        bound for bound in undeclared if bound.name in chosen and not satisfies(chosen[bound.name], bound.specifier)
    ]
    learned += python_bounds(request, resolution, pages(uv))
    learned += built_for_numpy_1(
        request,
        resolution,
        lambda file: requirements_of(uv, request, file),
        lambda name: list_releases(name, first_question(request), pages(uv)),
    )
    bounds, unread = _extra_bounds(uv, request, resolution)
    notes = {
        f"the metadata of {name} cannot be read: its compatibility with the base's framework is unknown"
        for name in unread
    }
    for name, bound in bounds.items():
        oldest = _oldest_refused(uv, request, name, chosen[name])
        if oldest is None:
            notes.add(
                f"{name} {chosen[name]} needs {bound.need}, and no older release with lower requirements was found"
            )
        else:
            learned.append(Constraint(name, f"<{oldest}", bound.why(name)))
    return learned, notes


def why_refused(uv: Uv, request: Request, name: str, version: str) -> str | None:
    """Why a release does not work over the request's base, as its extras say it; None if they refuse nothing."""
    releases = list_releases(name, first_question(request), pages(uv))
    file = next((release.file for release in releases if release.version == Version(version)), None)
    bound = (
        _bound_in(request, requirements_of(uv, request, file) or ()) if file and name not in request.unbound else None
    )
    return bound.why(name) if bound else None


def nearest_fitting(releases: Sequence[T], refused: Callable[[T], bool]) -> int | None:
    """The place of the first of `releases`, newest first, that is not refused; None if there is none.

    What is refused is taken to stand before what is not. Of n releases about 2 log n are looked at, the near ones
    first: far ones may be of another age, from before the extra that says so.
    """
    refused_at, step = -1, 1
    while True:
        fits_at = min(refused_at + step, len(releases) - 1)
        if fits_at <= refused_at:
            return None
        if not refused(releases[fits_at]):
            break
        refused_at, step = fits_at, step * 2
    while fits_at - refused_at > 1:
        middle = (refused_at + fits_at) // 2
        if refused(releases[middle]):
            refused_at = middle
        else:
            fits_at = middle
    return fits_at


def _oldest_refused(uv: Uv, request: Request, name: str, version: str) -> Version | None:
    """The first release of a package that needs a newer framework; None if no older one is known to need less."""
    found = list_releases(name, first_question(request), pages(uv))
    if not found:
        return Version(version)  # the index does not list its releases: the resolver finds the next older one
    older = [release for release in found if release.version < Version(version)]
    fitting = nearest_fitting(older, lambda release: _refuses(uv, request, release))
    if fitting is None:
        return None
    return older[fitting - 1].version if fitting else Version(version)


def _refuses(uv: Uv, request: Request, release: Release) -> bool:
    """Whether a release needs a newer framework. One whose metadata cannot be read is not taken instead of another."""
    requires = requirements_of(uv, request, release.file)
    return requires is None or _bound_in(request, requires) is not None


def _extra_bounds(uv: Uv, request: Request, resolution: Resolution) -> tuple[dict[str, ExtraBound], list[str]]:
    """Which of the chosen releases need a newer framework than the base's, and which wheels could not be read.

    Nothing is read for a base without a framework, nor of what the recipe gives by an address.
    """
    if not any(knowledge().framework_of(pin.name) for pin in request.protected.pins):
        return {}, []
    names = [
        package.name
        for package in resolution.packages
        if package.is_wheel and not package.url and package.name not in request.unbound
    ]
    found = parallel(lambda name: requirements_of(uv, request, resolution.files[name]), names, _AT_ONCE)
    read = dict(zip(names, found, strict=True))
    bounds = {name: bound for name, requires in read.items() if (bound := _bound_in(request, requires or ()))}
    return bounds, [name for name, requires in read.items() if requires is None]


def _bound_in(request: Request, requires: Iterable[str]) -> ExtraBound | None:
    return find_extra_bound(requires, request.protected.pins, knowledge(), request.target.environment())


def requirements_of(uv: Uv, request: Request, file: File) -> tuple[str, ...] | None:
    """As `read_requirements`; what was read is kept in uv's cache."""
    return read_requirements(file, uv.cache / "ctk-metadata", request.indexes)


def _learning(request: Request, learned: Sequence[Constraint]) -> Request:
    new = [
        bound
        for bound in learned
        if (bound.name not in request.unbound or isinstance(bound, PythonBound)) and bound not in request.learned
    ]
    return replace(request, learned=(*request.learned, *new))


def _installed(request: Request) -> dict[str, str]:
    return {name: distribution.version for name, distribution in request.target.installed.items()}
