"""The processor architecture of an image: what `uname -m` prints there. The host's, unless the recipe names others."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.recipes.model import Base, Recipe

# What `uname -m`, Go and package managers call the two architectures.
_NAMES = {"x86_64": "x86_64", "amd64": "x86_64", "x86-64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def parse_architecture(text: str) -> str:
    """`x86_64` or `aarch64` of its usual names. Raises WrongInput for another."""
    if text.lower() not in _NAMES:
        raise WrongInput(
            f"{text!r} is not an architecture that ctk knows", fix="x86_64 (amd64) or aarch64 (arm64: GH200, GB10)"
        )
    return _NAMES[text.lower()]


def host_architecture() -> str:
    """The architecture of this host."""
    return platform.machine()


def architecture_of(recipe: Recipe) -> str:
    """The architecture that a command is about: this host's where the recipe allows it, else the first that it names.

    A lock can be made for either; a build refuses any but the host's.
    """
    wanted, host = recipe.target.architectures, host_architecture()
    return host if not wanted or host in wanted else wanted[0]


def architectures_of(recipe: Recipe) -> tuple[str, ...]:
    """All architectures that a recipe is locked for."""
    return recipe.target.architectures or (host_architecture(),)


def for_architecture(recipe: Recipe, architecture: str) -> Recipe:
    """`recipe` for this architecture alone."""
    return replace(recipe, target=replace(recipe.target, architectures=(architecture,)))


def serves(base: Base, architecture: str) -> bool:
    """Whether what is recorded of `base` allows an image for `architecture`."""
    return not base.architectures or architecture in base.architectures
