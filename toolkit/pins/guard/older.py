"""A version that is likely to work instead of one that cannot be imported: found on the index, not tested."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.target import valid_version
from toolkit.pins.resolver.question import ask
from toolkit.pins.resolver.resolve import first_question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.pins.guard.likely import Likely
    from toolkit.pins.guard.trials import ImportFailure
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.resolver.question import Question
    from toolkit.pins.resolver.resolve import Request

_TIME_LIMIT = 60.0  # seconds for a question: it is advice, and the user waits for it


def likely_version(
    uv: Uv, request: Request, failure: ImportFailure, likely: Likely | None, added: Mapping[str, str]
) -> tuple[str, str] | None:
    """A requirement that is likely to help, and why; None if the index has none. At most four questions.

    First the package that is needed itself; then the newest release whose own extra accepts the framework of the base;
    then a release of an older series, which may need no more than the base has. `added` are the versions of the lock.
    """
    uv, question = replace(uv, patience=_TIME_LIMIT), first_question(request)
    if likely is not None and likely.need:
        if ask(uv, question.asking([*question.packages, likely.need]), again=True).possible:
            return likely.need, "compatible with the base"
        wanted = canonicalize_name(Requirement(likely.need).name)
        framework = knowledge().framework_of(wanted)
        for extra in framework.extras if framework else (wanted,):
            version = _answered(uv, question, failure.package, f"[{extra}]<{failure.version}", extra)
            if version is not None:
                return f"{failure.package}=={version}", f"its extra {extra} accepts the {wanted} of the base"
    other = likely.other if likely is not None else None
    name = other if other is not None and other in added else failure.package
    series = _series(added.get(name, failure.version))
    found = _answered(uv, question, name, f"<{series}") if series else None
    return (f"{name}=={found}", f"the newest release before {series} that fits") if found else None


def _answered(uv: Uv, question: Question, name: str, versions: str, extra: str = "") -> str | None:
    """The version that the resolver takes under `versions`; None if there is none, or it has no such extra."""
    others = [line for line in question.packages if canonicalize_name(Requirement(line).name) != name]
    answer = ask(uv, question.asking([*others, f"{name}{versions}"]), again=True)
    missing = extra and any(canonicalize_name(lacking) == name for lacking, _, _ in answer.missing_extras)
    return answer.installed.get(name) if answer.possible and not missing else None


def _series(version: str) -> str | None:
    """The first release of the series that `version` belongs to: 4.57 of 4.57.1, 5 of 5.0.2."""
    parsed = valid_version(version)
    if parsed is None:
        return None
    major, minor = (*parsed.release, 0)[:2]
    return f"{major}.{minor}" if minor else str(major)
