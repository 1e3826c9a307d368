"""Which of several bases to name first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from toolkit.recipes.model import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolkit.recipes.model import Base

# Families of images that hardware vendors build: several times as large as the framework's own.
_OF_VENDORS = ("NGC", "ROCm")


def by_preference(bases: Iterable[Base], served: Callable[[Base], int] | None = None) -> list[Base]:
    """`bases`, best first.

    Images for NVIDIA's GPUs come before those for AMD's, the framework's own before those of vendors, frameworks that
    pip installed before those from conda, to which no package can be added, and digests of several sources before those
    of one. Then comes what serves more (`served` counts it), then the newest framework, then the newest CUDA.
    """

    def rank(base: Base) -> tuple[object, ...]:
        return (
            not base.broken,
            base.rocm is None,
            base.family not in _OF_VENDORS,
            base.installer != "conda",
            base.evidence is not Evidence.SINGLE,
            served(base) if served else 0,
            version_of(base.framework_version),
            version_of(base.cuda),
        )

    return sorted(bases, key=rank, reverse=True)


def version_of(text: str | None) -> Version:
    """The version that `text` writes; the lowest one if it is missing or not a version."""
    try:
        return Version(text or "0")
    except InvalidVersion:
        return Version("0")
