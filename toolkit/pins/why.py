"""What a lock knows of one package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from toolkit.pins.resolve import RECIPE

if TYPE_CHECKING:
    from toolkit.pins.model import Lock


def why(lock: Lock, package: str) -> tuple[str, ...]:
    """What a lock knows of one package, a sentence each; nothing where it knows nothing."""
    name = canonicalize_name(package)
    there = dict(line.partition("==")[::2] for line in lock.present)
    found = []
    if (pin := lock.protected.pin(name)) is not None:
        found.append(f"{name} {pin.version} is protected, it is {pin.why}: nothing may change it.")
    elif name in there:
        found.append(f"{name} {there[name]} is in the base.")
    if (added := lock.package(name)) is not None:
        way = way_to_recipe(lock, name)
        found.append(f"{name} {added.version} is added" + (f": {' ← '.join([name, *way])}." if way else "."))
        found += [f"It takes the place of the base's {added.replaces}."] if added.replaces else []
    found += [f"It is not {one.newest}: {one.because}." for one in lock.held if one.name == name]
    bounds = [one for one in lock.protected.bounds if one.name == name]
    found += [f"Only {name} {one.specifier} goes with this base: {one.why}." for one in bounds]
    found += [f"{name} must stay out: {one.why}." for one in lock.protected.forbidden if one.name == name]
    return tuple(found)


def way_to_recipe(lock: Lock, name: str) -> list[str]:
    """How a package comes in, the shortest way, the recipe last; nothing where the lock does not know it."""
    by_name = {one.name: one for one in lock.packages}
    ways: list[list[str]] = [[name]]
    seen = {name}
    while ways:
        way = ways.pop(0)
        package = by_name.get(way[-1])
        for parent in package.required_by if package else ():
            if parent == RECIPE:
                return [*way[1:], "the recipe"]
            if parent not in seen:
                seen.add(parent)
                ways.append([*way, parent])
    return []
