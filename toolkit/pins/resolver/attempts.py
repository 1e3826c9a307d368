"""Resolve the packages of a recipe; if the resolver fails, find the actual reason."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge, satisfies
from toolkit.pins.resolver.aliases import base_aliases, resolve_variants, with_aliases
from toolkit.pins.resolver.conflicts import explain_conflict, explain_newest, explain_old_build
from toolkit.pins.resolver.explain import newest_versions
from toolkit.pins.resolver.extras import MissingExtra
from toolkit.pins.resolver.newest import free_packages, resolve_newest
from toolkit.pins.resolver.outdated import find_old_builds
from toolkit.pins.resolver.question import UnreadableSource, ask
from toolkit.pins.resolver.resolve import Conflict, first_question
from toolkit.pins.resolver.sources import Sources, lock_sources, source_metadata
from toolkit.support.errors import CheckFailed, ProgramFailed, WrongInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.pins.index.uv import Uv
    from toolkit.pins.resolver.aliases import Alias
    from toolkit.pins.resolver.question import Metadata
    from toolkit.pins.resolver.resolve import Request, Resolution
    from toolkit.recipes.model import Base

_MAX_ATTEMPTS = 6
_FIRST_TRY_SECONDS = 120.0
_TIME_LIMIT = 60.0  # seconds for a question on the way to a reason
_CAUSED_BY_OLD_RELEASES = ("resolver-failed", "no-build-tools", "resolver-timeout")


def resolve_recipe(
    uv: Uv, request: Request, bases: Sequence[Base], downloads: Path, *, fresh: bool = False
) -> tuple[Request, Resolution, Sources]:
    """What will be added for `request`, what its source distributions need, and the request as it was resolved.

    Raises CheckFailed or WrongInput with the reason if there is no answer, ProgramFailed if uv fails.
    """
    before: MissingExtra | None = None
    # A resolver that needs longer is usually trying old releases: run it again, starting with the newest ones.
    patient = replace(uv, patience=min(uv.patience, _FIRST_TRY_SECONDS))
    for _ in range(_MAX_ATTEMPTS):
        aliases = base_aliases(request.target, knowledge())
        asked = with_aliases(request, aliases)
        try:
            choose = partial(_resolve_variants, patient, aliases)
            last, resolution = resolve_newest(patient, asked, fresh=fresh, resolver=choose)
            resolution = _require_age(uv, last, resolution, bases)
            return last, resolution, lock_sources(uv, last, resolution, downloads)
        except Conflict as conflict:
            raise _after(before, explain_conflict(uv, conflict.request, conflict, bases)) from conflict
        except MissingExtra as missing:
            narrowed = _newer_with_extra(uv, asked, request, missing)
            if narrowed is None:
                raise
            request, before = narrowed, missing
        except ProgramFailed as failure:
            known = _read_metadata(uv, asked, failure, downloads)
            if known is not None:
                request = replace(request, metadata=(*request.metadata, known))
                continue
            if isinstance(failure, UnreadableSource) and failure.pin in request.prefer:
                request = replace(request, prefer=tuple(pin for pin in request.prefer if pin != failure.pin))
                continue
            reason = _true_reason(uv, asked, failure, bases)
            if reason is not failure or failure.code != "resolver-timeout" or patient is uv:
                raise reason from failure
            patient, request = uv, replace(request, aims=_newest_releases(uv, asked))
    raise CheckFailed(
        "no compatible versions were found",
        fix="Request exact versions of the packages in the recipe, or start from another base.",
        code="requirements-conflict",
    )


def _resolve_variants(uv: Uv, aliases: Sequence[Alias], request: Request, fresh: bool) -> tuple[Request, Resolution]:
    return resolve_variants(uv, request, aliases, knowledge(), fresh=fresh)


def _newest_releases(uv: Uv, request: Request) -> tuple[str, ...]:
    """Pins of the newest releases of what the recipe asks for: what a resolver that timed out should begin with."""
    lines = {
        str(canonicalize_name(requirement.name)): str(requirement.specifier)
        for requirement in map(Requirement, request.packages)
    }
    free = [name for name in free_packages(request) if name not in request.target.installed]
    newest = newest_versions(uv, first_question(request), free)
    return tuple(f"{name}=={version}" for name, version in sorted(newest.items()) if satisfies(version, lines[name]))


def _require_age(uv: Uv, request: Request, resolution: Resolution, bases: Sequence[Base]) -> Resolution:
    """With a note for what was compiled for an older framework. Raises CheckFailed if only ctk would choose that."""
    notes = []
    for build in find_old_builds(uv, request, resolution):
        if build.name in free_packages(request) and (refused := explain_old_build(uv, request, build, bases)):
            raise refused
        notes.append(f"{build.message}: it may not work")
    return replace(resolution, notes=(*resolution.notes, *notes))


def _after(missing: MissingExtra | None, error: CheckFailed | WrongInput) -> CheckFailed | WrongInput:
    if missing is not None:
        error.message = (
            f"{missing.name} {missing.version} fits, but has no extra [{missing.extra}]. Newer releases have it, but "
            f"do not fit: {error.message}"
        )
        error.args = (error.message,)
    return error


def _newer_with_extra(uv: Uv, asked: Request, request: Request, missing: MissingExtra) -> Request | None:
    """`request` without the releases up to the one that lacks the extra; None if the newest one lacks it too."""
    mine = [line for line in request.packages if canonicalize_name(Requirement(line).name) == missing.name]
    alone = first_question(asked).asking(mine).under(())
    # Not from the cache alone: it may hold no more than the release that lacks the extra.
    answer = ask(uv, replace(alone, target=replace(alone.target, installed={})))
    lacks = {(name, extra) for name, _, extra in answer.missing_extras}
    if not answer.possible or missing.name in asked.target.installed or (missing.name, missing.extra) in lacks:
        return None

    def newer(line: str) -> str:
        requirement = Requirement(line)
        requirement.specifier &= f">{missing.version}"
        return str(requirement)

    return replace(request, packages=tuple(newer(line) if line in mine else line for line in request.packages))


def _read_metadata(uv: Uv, request: Request, failure: ProgramFailed, downloads: Path) -> Metadata | None:
    """The requirements of a release whose `setup.py` imports what is only in the image, such as torch."""
    if not isinstance(failure, UnreadableSource) or failure.missing_module is None:
        return None
    if any(known.name == failure.name and known.version == failure.version for known in request.metadata):
        return None
    return source_metadata(uv, request, failure.name, failure.version, downloads)


def _true_reason(
    uv: Uv, request: Request, failure: ProgramFailed, bases: Sequence[Base]
) -> ProgramFailed | CheckFailed:
    if failure.code not in _CAUSED_BY_OLD_RELEASES:
        return failure
    try:
        return explain_newest(replace(uv, patience=_TIME_LIMIT), request, bases) or failure
    except ProgramFailed:
        return failure
