"""The error, and the proposed fix, if packages of a build cannot be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.pins.guard.likely import likely_cause, versions_of
from toolkit.support.errors import CheckFailed, CtkError
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolkit.pins.guard.likely import Likely
    from toolkit.pins.guard.trials import ImportFailure
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Recipe
    from toolkit.support.paths import WorkArea

CODE = "import-failed"
_MAX_SEARCHED = 3  # failures for which the index is asked


def imports_failed(
    what: str,
    recipe: Recipe | None,
    lock: Lock | None,
    failed: Sequence[ImportFailure],
    log: Path,
    area: WorkArea,
) -> CheckFailed:
    """The error of an import step. `what` begins the message; a recipe with its lock brings proposals."""
    versions = versions_of(lock) if lock else {}
    causes = [likely_cause(failure, versions) for failure in failed]
    reasons = [
        f"{failure.message}{f' (likely: {cause.meaning})' if cause else ''}"
        for failure, cause in zip(failed, causes, strict=True)
    ]
    ways = list(_proposals(recipe, lock, failed, causes, area)) if recipe and lock else []
    return CheckFailed(
        f"{what} failed: {'; '.join(reasons)}",
        fix="\n".join([*ways, *_allow(recipe, failed), f"Full log: {log}"]),
        code=CODE,
    )


def _allow(recipe: Recipe | None, failed: Sequence[ImportFailure]) -> Iterator[str]:
    names = list(dict.fromkeys(failure.package for failure in failed))
    if recipe is None:
        yield "If its import needs a GPU or a licence file, list it in `skip` under [imports] of the recipe."
        return
    options = [word for name in names for word in ("--allow-import-failure", name)]
    command = command_line(["ctk", "build", recipe.name, *options])
    yield f"If its import needs a GPU or a licence file: {command}"


def _proposals(
    recipe: Recipe,
    lock: Lock,
    failed: Sequence[ImportFailure],
    causes: Sequence[Likely | None],
    area: WorkArea,
) -> Iterator[str]:
    for number, (failure, cause) in enumerate(zip(failed, causes, strict=True)):
        if cause is not None and cause.apt:
            yield f"On Debian and Ubuntu: {command_line(['ctk', 'add', '--apt', recipe.name, *cause.apt])}"
        elif cause is not None and cause.fix:
            yield cause.fix
        elif (cause is None or not cause.allow) and number < _MAX_SEARCHED:
            found = _search(recipe, lock, failure, cause, area)
            if found is not None:
                line, why = found
                yield f"Likely to work ({why}): {command_line(['ctk', 'add', recipe.name, line])}"


def _search(
    recipe: Recipe, lock: Lock, failure: ImportFailure, cause: Likely | None, area: WorkArea
) -> tuple[str, str] | None:
    """A requirement that is likely to help. None if the index or the base cannot be queried: it is only advice."""
    from toolkit.builds.bases import kept_base
    from toolkit.pins.bases.facts import gather_facts
    from toolkit.pins.guard.older import likely_version
    from toolkit.pins.index.uv import open_uv
    from toolkit.pins.resolver.resolve import Request

    digest = lock.base.digest
    kept = kept_base(digest, area) if digest is not None else None
    try:
        image = kept if kept is not None and kept.is_file() else None
        facts = gather_facts(
            recipe.base, area.path / "cache", architecture=lock.architecture, image=image, digest=digest
        )
        request = Request(facts.target, lock.asked, lock.protected, lock.exclude_newer, (), lock.indexes)
        added = {package.name: package.version for package in lock.packages}
        return likely_version(open_uv(area.path), request, failure, cause, added)
    except CtkError:
        return None
