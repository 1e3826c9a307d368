"""pip silently ignores an extra that does not exist: `jax[cuda13]==0.6.2` means JAX on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from toolkit.pins.resolver.constraints import active_requirements
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.resolver.question import Answer


class MissingExtra(CheckFailed):
    """The release of `name` that was chosen has no such extra."""

    code = "no-such-extra"

    def __init__(self, name: str, version: str, extra: str) -> None:
        super().__init__(
            f"{name} {version} has no extra [{extra}]: pip would silently install {name} without it",
            fix=f"Request a version of {name} that has [{extra}], or an extra that this version has.",
        )
        self.name = name
        self.version = version
        self.extra = extra


def require_extras(packages: Iterable[str], target: PythonTarget, answer: Answer) -> None:
    """Raise MissingExtra for an extra in `packages` that the chosen release, or the base's own, does not have."""
    asked: dict[str, set[str]] = {}
    for requirement in active_requirements(packages, target.environment()):
        extras = asked.setdefault(canonicalize_name(requirement.name), set())
        extras.update(map(canonicalize_name, requirement.extras))
    for name, version, extra in (*answer.missing_extras, *_missing_in_base(asked, target, answer)):
        if canonicalize_name(extra) in asked.get(name, ()):
            raise MissingExtra(name, version, extra)


def _missing_in_base(
    asked: dict[str, set[str]], target: PythonTarget, answer: Answer
) -> Iterator[tuple[str, str, str]]:
    """For what the base has and keeps, its own metadata is used instead of the index."""
    for name in sorted(asked.keys() & target.installed.keys() - answer.installed.keys()):
        there = target.installed[name]
        if not (there.requires or there.extras):
            continue  # no metadata: left behind by conda or Debian
        for extra in sorted(asked[name] - set(map(canonicalize_name, there.extras))):
            yield name, there.version, extra
