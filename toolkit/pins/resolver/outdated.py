"""Releases that were compiled before the base's framework was there: they install, but are not built for it.

A package that is compiled against a framework fits one minor release of it: neither PyTorch nor TensorFlow keeps its
C++ ABI stable. Later releases of such a package say so (`torch==2.5.1`), but one from before they did asks for
`torch>=2.1`, and a resolver ends there when it finds nothing newer. Sources: PyTorch's notes on the LibTorch stable
ABI, which covers a part of its headers since 2.10; TensorFlow's version compatibility guide, "What is not covered".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.target import valid_version
from toolkit.pins.index.wheels import is_compiled
from toolkit.pins.resolver.constraints import active_requirements
from toolkit.pins.resolver.extra_bounds import wants_newer
from toolkit.pins.resolver.releases import list_releases, pages
from toolkit.pins.resolver.resolve import first_question
from toolkit.pins.resolver.working import nearest_fitting, requirements_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from packaging.requirements import Requirement

    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.protected import Pin
    from toolkit.pins.resolver.releases import Release
    from toolkit.pins.resolver.resolve import Request, Resolution

_TOGETHER = timedelta(days=30)  # packages for a framework release may appear shortly before it


@dataclass(frozen=True, slots=True)
class OldBuild:
    """`name` in `version` was compiled in `year`, before there was the minor version of the framework in the base.

    `framework` is its pin, `title` what it is called.
    """

    name: str
    version: str
    year: int
    title: str
    framework: Pin

    @property
    def message(self) -> str:
        return (
            f"{self.name} {self.version} was compiled in {self.year}, before the base's {self.title} "
            f"{self.framework.version} was released"
        )


def find_old_builds(uv: Uv, request: Request, resolution: Resolution) -> tuple[OldBuild, ...]:
    """Which of what was chosen was compiled before the framework. What the recipe does not import is left out."""
    pins = {pin: framework.title for pin in request.protected.pins if (framework := knowledge().framework_of(pin.name))}
    found = []
    for name, file in sorted(resolution.files.items()) if pins else ():
        if not is_compiled(file) or file.uploaded is None or name in request.unbound or request.protected.pin(name):
            continue
        requires = active_requirements(requirements_of(uv, request, file) or (), request.target.environment())
        # What names one exact version was made for it, even if it was uploaded first: torchvision 0.25.0.
        for pin in required_frameworks((line for line in requires if not _is_exact(line)), pins):
            day = _first_of_series(uv, request, pin)
            if day is not None and file.uploaded < day - _TOGETHER:
                version = next(package.version for package in resolution.packages if package.name == name)
                found.append(OldBuild(name, version, file.uploaded.year, pins[pin], pin))
                break
    return tuple(found)


def _is_exact(requirement: Requirement) -> bool:
    return any(clause.operator == "==" and "*" not in clause.version for clause in requirement.specifier)


def required_frameworks(requires: Iterable[Requirement], pins: Mapping[Pin, str]) -> list[Pin]:
    """The frameworks of a base that requirements name, by whichever of their names."""
    found = {knowledge().framework_of(canonicalize_name(requirement.name)) for requirement in requires} - {None}
    return [pin for pin in pins if knowledge().framework_of(pin.name) in found]


def bound_release(uv: Uv, request: Request, build: OldBuild) -> tuple[Release, bool] | None:
    """The newest release that needs no newer framework (True), else the newest of all (False).

    None if that does not require one exact version of the framework, or none is newer than `build`: then nothing
    says that a build fits one version only.
    """
    there = valid_version(build.framework.version)
    found = list_releases(build.name, first_question(request), pages(uv))
    releases = [release for release in found if release.version > Version(build.version)]

    def bounds(release: Release) -> list[Requirement]:
        requires = active_requirements(requirements_of(uv, request, release.file) or (), request.target.environment())
        return [
            requirement
            for requirement in requires
            if required_frameworks([requirement], {build.framework: build.title})
        ]

    def refused(release: Release) -> bool:
        ours = bounds(release)
        return there is None or not ours or any(wants_newer(requirement, there) for requirement in ours)

    fitting = nearest_fitting(releases, refused)
    chosen = releases[fitting or 0] if releases else None
    if chosen is None or not any(clause.operator == "==" for line in bounds(chosen) for clause in line.specifier):
        return None
    return chosen, fitting is not None


def _first_of_series(uv: Uv, request: Request, pin: Pin) -> datetime | None:
    """The day on which the first release with the framework's minor version was there."""
    there = valid_version(pin.version)
    days = [
        release.file.uploaded
        for release in list_releases(pin.name, first_question(request), pages(uv))
        if there is not None and release.version.release[:2] == there.release[:2] and release.file.uploaded
    ]
    return min(days, default=None)
