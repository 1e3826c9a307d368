"""Preferred releases that were compiled for numpy 1, where the image has numpy 2.

Their metadata allows numpy 2, which was not there yet: `numpy>=1.21` of pandas 1.5.3, which then fails at its import
with "numpy.dtype size changed". Releases that were compiled since run with both. Sources: numpy's 2.0 migration guide;
imports over numpy 2.1.2 on 2026-11-23 of 13 such releases, of which only contourpy 1.1.0 worked.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.pins.bases.target import valid_version
from toolkit.pins.index.wheels import is_compiled
from toolkit.pins.resolver.constraints import Constraint, active_requirements
from toolkit.pins.resolver.keeping import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolkit.pins.index.wheels import File
    from toolkit.pins.resolver.releases import Release
    from toolkit.pins.resolver.resolve import Request, Resolution

_SINCE = datetime(2024, 3, 10, tzinfo=timezone.utc)  # numpy 2.0.0rc1 on PyPI, the first that one could compile for


def built_for_numpy_1(
    request: Request,
    resolution: Resolution,
    read: Callable[[File], Iterable[str] | None],
    releases: Callable[[str], Iterable[Release]],
) -> list[Constraint]:
    """What excludes such releases, unless the recipe itself says something about their versions.

    `read` returns Requires-Dist of a wheel, `releases` the releases of a package.
    """
    chosen = {package.name: package.version for package in resolution.packages}
    there = request.target.installed.get("numpy")
    numpy = valid_version(chosen.get("numpy") or (there.version if there else ""))
    if numpy is None or numpy < Version("2.0.0.dev0"):
        return []
    asked = {canonicalize_name(line.name) for line in map(Requirement, request.packages) if line.specifier or line.url}
    found = []
    for name in sorted({*map(name_of, request.prefer)} & resolution.files.keys() - asked):
        file = resolution.files[name]
        if not _is_old(file) or not _requires_numpy(request, read(file) or ()):
            continue
        last = max((release.version for release in releases(name) if _is_old(release.file)), default=chosen[name])
        by = f"{name} {chosen[name]} was compiled for numpy 1; the image has numpy {numpy}"
        found.append(Constraint(name, f">{last}", by))
    return found


def _is_old(file: File) -> bool:
    return is_compiled(file) and file.uploaded is not None and file.uploaded < _SINCE


def _requires_numpy(request: Request, requires: Iterable[str]) -> bool:
    active = active_requirements(requires, request.target.environment())
    return any(canonicalize_name(requirement.name) == "numpy" for requirement in active)
