"""Which of several bases with one framework to name first, where nothing is known of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from toolkit.recipes.model import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.recipes.model import Base

# Families of images that hardware vendors build for their users.
_OF_VENDORS = ("NGC", "ROCm")


def by_preference(bases: Iterable[Base]) -> list[Base]:
    """Those of `bases` to which packages can be added, best first.

    The framework's own images come first, then digests of several sources, code for many GPU generations, and the
    newest framework. Broken bases are left out, and those whose framework conda installed.
    """
    usable = (base for base in bases if not base.broken and base.installer == "pip")
    return sorted(usable, key=_rank, reverse=True)


def _rank(base: Base) -> tuple[bool, bool, int, Version]:
    return (
        base.family not in _OF_VENDORS,
        base.evidence is not Evidence.SINGLE,
        len(base.capabilities),
        version_of(base.framework_version),
    )


def version_of(text: str | None) -> Version:
    """The version that `text` writes; the lowest one if it is missing or not a version."""
    try:
        return Version(text or "0")
    except InvalidVersion:
        return Version("0")
