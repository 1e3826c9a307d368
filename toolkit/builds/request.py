"""The user's request for a build, before anything is resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.form import Form

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.target import BuildTarget
    from toolkit.pins.bases.steady import BaseState
    from toolkit.recipes.model import Base, Recipe
    from toolkit.runtime.engine import BuildOptions


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A target, where its image goes, and how it is written.

    `recipe` is what a recipe's name means, on the base that was asked for; None for another target. `base` is what the
    image starts from; None if only the user's own definition or sandbox says it. `base_state` is what a base on this
    machine was when it was asked for: it must stay so until the image is whole. `files` is the state of what is copied
    into the image (`state_of_copied`), before ctk looked for private files in it. `link` is the symlink that led to
    `output`, if there was one. `force` replaces the output whatever image it is.
    """

    target: BuildTarget
    recipe: Recipe | None
    base: Base | None
    base_state: BaseState | None
    output: Path
    link: Path | None
    options: BuildOptions
    force: bool = False
    files: str = ""

    @property
    def sandbox(self) -> bool:
        """Whether a sandbox is asked for, and not a SIF."""
        return self.options.sandbox

    @property
    def form(self) -> Form | None:
        """The form that was asked for; None if ctk chooses."""
        layered = self.options.layered
        return None if layered is None else Form.LAYERED if layered else Form.FLAT

    @property
    def log(self) -> Path:
        """Where `ctk build` keeps what the build printed: next to the output."""
        return self.output.with_name(f"{self.output.name}.build.log")
