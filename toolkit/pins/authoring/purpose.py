"""What code uses a framework for: to compute, only for its data, or as an old version alone has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.inventory.knowledge.frameworks import Framework, Knowledge, OldParts
    from toolkit.inventory.knowledge.names import Names
    from toolkit.pins.authoring.imports import Imports


def used_for_data(found: Imports, known: Names, frameworks: Knowledge) -> frozenset[str]:
    """The frameworks that only feed another one.

    A framework computes where the code uses a part of it that its own file does not list under `data`, where that lists
    none of its parts (JAX), or where the code imports a companion of it alone (flax, torchvision). Of the others the
    code uses nothing but data; if none computes, none is known to be for data only.
    """
    wanted, computing = set(), set()
    modules = {name.partition(".")[0] for name in found.required}
    for framework in frameworks.frameworks:
        if framework.module in modules:
            wanted.add(framework.name)
            data = known.data.get(framework.name)
            parts = _parts(framework.module, found.uses)
            if data is None or not all(_is_part(part, data.parts) for part in parts):
                computing.add(framework.name)
    for module in found.required:
        distribution = known.distribution(module)
        behind = known.frameworks_behind(distribution) if distribution and not known.feeds(distribution) else ()
        computing.update(behind if len(behind) == 1 else ())
    return frozenset(wanted - computing) if computing else frozenset()


@dataclass(frozen=True, slots=True)
class OldCode:
    """Code at `place` that uses `part` of `framework`, which only an old version of that has, as `old` says."""

    framework: Framework
    old: OldParts
    part: str
    place: str


def find_old_code(found: Imports, frameworks: Knowledge) -> OldCode | None:
    """The first thing that only an old version of a framework has; None if there is none."""
    return next(
        (code for framework in frameworks.frameworks if (code := _old_code(found, framework)) is not None), None
    )


def _old_code(found: Imports, framework: Framework) -> OldCode | None:
    places = {**found.uses, **found.required}
    old, parts = framework.old, list(_parts(framework.module, places))
    if old is None or any(_is_part(part, old.ported) for part in parts):
        return None
    names = (f"{framework.module}.{part}" for part in parts if _is_part(part, old.parts))
    return next((OldCode(framework, old, name, places[name]) for name in names), None)


def _parts(module: str, names: Iterable[str]) -> Iterator[str]:
    """What of a module dotted names name: `data.Dataset` of `tensorflow.data.Dataset`."""
    return (name.removeprefix(f"{module}.") for name in names if name.startswith(f"{module}."))


def _is_part(part: str, of: Iterable[str]) -> bool:
    """Whether a dotted name is one of `of`, or inside one."""
    return any(part == name or part.startswith(f"{name}.") for name in of)
