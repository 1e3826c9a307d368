"""Which package requires which, of chosen versions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.pins.lock.model import RECIPE
from toolkit.pins.resolver.constraints import active_requirements
from toolkit.pins.resolver.question import compile_lines, require_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.resolver.question import Question


def who_requires_whom(
    uv: Uv, question: Question, versions: Mapping[str, str], prefer: Iterable[str] | None = None
) -> dict[str, set[str]]:
    """For each name in `versions` the names that require it, RECIPE for the recipe's own request.

    A version "" leaves it open; pins in `prefer` are taken where they can be. Raises NotOnIndex for a package that no
    index has, ProgramFailed if uv finds no answer for another reason.
    """
    pins = [f"{name}=={version}" for name, version in versions.items() if version]
    staying = sorted(question.target.installed.keys() - versions.keys())
    wanted = sorted({root for line in question.packages for root in _roots(line, question.target, versions)})
    if not wanted:
        return {}
    asked = replace(question, packages=tuple(wanted), constraints=tuple(sorted(pins)))
    done = compile_lines(uv, asked, "--annotation-style", "line", excludes=staying, prefer=prefer)
    require_lines(done, "asking who requires whom")
    found: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        requirement, _, origin = line.partition("# via ")
        if not origin:
            continue
        name = canonicalize_name(Requirement(requirement.strip()).name)
        by = [word.strip() for word in origin.split(",")]
        # The project that binds packages to an index asks for nothing itself.
        found[name] = {canonicalize_name(word) for word in by if not word.startswith("-") and "(" not in word}
        if any(word.startswith("-r") for word in by):
            found[name].add(RECIPE)
    return found


def _roots(line: str, target: PythonTarget, versions: Mapping[str, str]) -> Iterator[str]:
    """The recipe's line itself; of one whose package is in the base, what its extras add: `jax[cuda12]` over a JAX."""
    requirement = Requirement(line)
    name = canonicalize_name(requirement.name)
    if name in versions:
        yield line
    elif name in target.installed:
        for needed in active_requirements(target.installed[name].requires, target.environment(), requirement.extras):
            if canonicalize_name(needed.name) in versions:
                needed.marker = None
                yield str(needed)


def closure(edges: Mapping[str, set[str]], roots: Iterable[str]) -> frozenset[str]:
    """The transitive dependencies of `roots`, themselves included."""
    reached: set[str] = {canonicalize_name(Requirement(root).name) for root in roots}
    while True:
        more = {name for name, by in edges.items() if by & reached} - reached
        if not more:
            return frozenset(reached)
        reached |= more


def needed(edges: Mapping[str, set[str]]) -> frozenset[str]:
    """The packages of the recipe with their transitive dependencies."""
    return closure(edges, [name for name, by in edges.items() if RECIPE in by])
