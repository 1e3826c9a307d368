"""The files that a lock names: those that ctk downloads, and what only a build can fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from toolkit.pins.index.locate import Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.pins.lock.model import Lock, LockedPackage


def wanted_files(lock: Lock) -> tuple[Wanted, ...]:
    """The files with a hash that an index has, each once: packages, what builds sources, a newer pip."""
    found = (
        Wanted(canonicalize_name(package.name), package.file, package.sha256)
        for package in _all(lock)
        if package.file is not None and package.sha256 is not None and package.url is None
    )
    return tuple({(file.name, file.sha256): file for file in found}.values())


def fetched_by_build(lock: Lock) -> tuple[LockedPackage, ...]:
    """What the installer itself fetches in a build: commits, addresses, and files without a hash."""
    return tuple(
        package for package in _all(lock) if package.file is None or package.sha256 is None or package.url is not None
    )


def _all(lock: Lock) -> Iterator[LockedPackage]:
    yield from lock.packages
    for build in lock.builds:
        yield from build.packages
    if lock.installer is not None:
        yield lock.installer
