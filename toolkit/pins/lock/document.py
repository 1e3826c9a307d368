"""A lock as plain keys and values: the common form of the lock file, the guard and `ctk lock --json`.

The keys are those of docs/schemas/lock.json.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Displaced, Held, Lock, LockedBase, LockedPackage, SourceBuild
    from toolkit.pins.lock.protected import Ban, Bound, Pin, ProtectedSet
    from toolkit.recipes.model import Index


def lock_document(lock: Lock) -> dict[str, Any]:
    """The content of a lock, but for its recipe and architecture. Unknown values are None."""
    return {
        "input": lock.input,
        "exclude_newer": lock.exclude_newer,
        "asked": list(lock.asked),
        "notes": list(lock.notes),
        **_protected(lock.protected),
        "packages": [_package(package) for package in lock.packages],
        "held_back": [_held(held) for held in lock.held],
        "preferred": list(lock.preferred),
        "displaced": [_displaced(displaced) for displaced in lock.displaced],
        "present": list(lock.present),
        "base": _base(lock.base),
        "installer": _package(lock.installer) if lock.installer else None,
        "indexes": [index_document(index) for index in lock.indexes],
        "builds": [_build(build) for build in lock.builds],
        "added": _protected(lock.own) if lock.own.pins else None,
    }


def _protected(protected: ProtectedSet) -> dict[str, Any]:
    return {
        "protected": [_pin(pin) for pin in protected.pins],
        "bounds": [_bound(bound) for bound in protected.bounds],
        "forbidden": [_ban(ban) for ban in protected.forbidden],
    }


def index_document(index: Index) -> dict[str, Any]:
    """A package index. Its address holds no credentials."""
    return {"name": index.name, "url": index.url, "kind": index.kind, "packages": list(index.packages)}


def _pin(pin: Pin) -> dict[str, Any]:
    return {"name": pin.name, "version": pin.version, "why": pin.why}


def _bound(bound: Bound) -> dict[str, Any]:
    return {"name": bound.name, "specifier": bound.specifier, "why": bound.why}


def _ban(ban: Ban) -> dict[str, Any]:
    return {"name": ban.name, "why": ban.why}


def _package(package: LockedPackage) -> dict[str, Any]:
    return {
        "name": package.name,
        "version": package.version,
        "file": package.file,
        "sha256": package.sha256,
        "url": package.url,
        "replaces": package.replaces,
        "required_by": list(package.required_by),
    }


def _held(held: Held) -> dict[str, Any]:
    return {"name": held.name, "version": held.version, "newest": held.newest, "why": held.because}


def _displaced(displaced: Displaced) -> dict[str, Any]:
    return {"name": displaced.name, "versions": list(displaced.versions), "why": displaced.because}


def _base(base: LockedBase) -> dict[str, Any]:
    return {
        "name": base.name,
        "bootstrap": base.bootstrap,
        "reference": base.reference,
        "digest": base.digest,
        "inventory": base.inventory,
        "python": base.python,
        "architecture": base.architecture,
        "glibc": base.glibc,
        "executable": base.executable,
    }


def _build(build: SourceBuild) -> dict[str, Any]:
    return {
        "sources": list(build.sources),
        "requires": list(build.requires),
        "packages": [_package(package) for package in build.packages],
    }
