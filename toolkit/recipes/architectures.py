"""The processor architecture of an image: what `uname -m` prints there. The host's, unless the recipe names others."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.recipes.model import Recipe

# What `uname -m`, Go and package managers call the two architectures.
_NAMES = {"x86_64": "x86_64", "amd64": "x86_64", "x86-64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def parse_architecture(text: str) -> str:
    """`x86_64` or `aarch64` of its usual names. Raises WrongInput for another."""
    if text.lower() not in _NAMES:
        raise WrongInput(
            f"{text!r} is not an architecture that ctk knows", fix="x86_64 (amd64) or aarch64 (arm64: GH200, GB10)"
        )
    return _NAMES[text.lower()]


def listed_architectures(texts: Iterable[str]) -> tuple[str, ...]:
    """The architectures of an option that is repeatable and takes several, separated by commas. Raises WrongInput."""
    words = (word.strip() for text in texts for word in text.split(","))
    return tuple(dict.fromkeys(map(parse_architecture, words)))


def only_architecture(texts: Iterable[str] | None) -> str | None:
    """The architecture of an option that takes one; None without it. Raises WrongInput for several."""
    listed = listed_architectures(texts or ())
    if len(listed) > 1:
        raise WrongInput(
            f"--arch takes one architecture here, not {', '.join(listed)}", fix="Run the command once for each."
        )
    return listed[0] if listed else None


def host_architecture() -> str:
    """The architecture of this host."""
    return platform.machine()


def architecture_of(recipe: Recipe) -> str:
    """The architecture that a command is about: this host's where the recipe allows it, else the first that it names.

    A lock can be made for either; a build refuses any but the host's.
    """
    wanted, host = recipe.target.architectures, host_architecture()
    return host if not wanted or host in wanted else wanted[0]


def lock_command(name: str, architecture: str) -> str:
    """The command that locks a recipe for one architecture, whatever its `[target]` and this host are."""
    return f"ctk lock {name} --arch {architecture}"


def for_architecture(recipe: Recipe, architecture: str) -> Recipe:
    """`recipe` for this architecture alone."""
    return replace(recipe, target=replace(recipe.target, architectures=(architecture,)))


def per_architecture(recipe: Recipe, named: tuple[str, ...] = ()) -> tuple[Recipe, ...]:
    """`recipe` once for each architecture that it is locked for: those `named`, else its own, else the host's."""
    wanted = named or recipe.target.architectures
    return tuple(for_architecture(recipe, architecture) for architecture in wanted) or (recipe,)
