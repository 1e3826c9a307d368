"""What a lock says about one package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge, matches
from toolkit.pins.lock.model import RECIPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.pins.lock.model import Displaced, Lock


def why(lock: Lock, package: str) -> tuple[str, ...]:
    """What a lock says about one package, one sentence each; empty if it is not in the lock."""
    name = canonicalize_name(package)
    there = dict(line.partition("==")[::2] for line in lock.present)
    if (stand_in := _stand_in(lock, name, there)) is not None:
        by, sentence = stand_in
        return sentence, *why(lock, by)
    found = []
    if (pin := lock.protected.pin(name)) is not None:
        found.append(f"{name} {pin.version} is protected ({pin.why}) and must not change.")
    elif lock.own.pin(name) is not None:
        found.append(f"{name} is protected like a framework of the base: only `ctk lock --upgrade` changes it.")
    elif name in there:
        found.append(f"{name} {there[name]} is in the base.")
    if (added := lock.package(name)) is not None:
        way = way_to_recipe(lock, name)
        found.append(f"{name} {added.version} is added" + (f": {' ← '.join([name, *way])}." if way else "."))
        found += [f"It replaces the base's {added.replaces}."] if added.replaces else []
    missed = [displaced for displaced in lock.displaced if found and displaced.name == name]
    told = {displaced.versions[0] for displaced in missed}
    held = (held for held in lock.held if held.name == name and held.newest not in told)
    found += [f"It is not {newer.newest}: {newer.because}." for newer in held]
    found += [_displaced(lock, displaced) for displaced in missed]
    bounds = [bound for bound in (*lock.protected.bounds, *lock.own.bounds) if bound.name == name]
    found += [f"Only {name} {bound.specifier} is compatible with this base: {bound.why}." for bound in bounds]
    forbidden = (*lock.protected.forbidden, *lock.own.forbidden)
    bans = [ban for ban in forbidden if name not in there and matches(name, (ban.name,))]
    found += [f"{name} cannot be installed: {ban.why}." for ban in bans]
    return tuple(found)


def _displaced(lock: Lock, displaced: Displaced) -> str:
    version = displaced.versions[0]
    is_listed = f"{displaced.name}=={version}" in lock.preferred
    return f"It is not {version}, which {'the recipe prefers' if is_listed else 'it was before'}: {displaced.because}."


def _stand_in(lock: Lock, name: str, there: Mapping[str, str]) -> tuple[str, str] | None:
    """The distribution in the image that replaces `name`, which is not installed, and a sentence about it."""
    in_image = {**there, **{package.name: package.version for package in lock.packages}}
    group = knowledge().variants_of(name)
    if name in in_image or group is None:
        return None
    for by in sorted(in_image):
        if not group.includes(by) or (stand := group.served_by(by, name)) is None:
            continue
        start = f"{by} {in_image[by]} is used in place of {name}"
        # The note of the lock also tells who requires it.
        noted = next((note for note in lock.notes if note.startswith((f"{start},", f"{start}:"))), None)
        lacks = f". It lacks {stand.lacks}" if stand.lacks else ""
        sentence = noted or f"{start}: both install the module {group.module}{lacks}"
        return by, f"{name} is not installed. {sentence}."
    return None


def way_to_recipe(lock: Lock, name: str) -> list[str]:
    """The shortest dependency path from a package to the recipe; empty if the lock does not have the package."""
    by_name = {package.name: package for package in lock.packages}
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
