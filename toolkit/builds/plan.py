"""The plan of a build: complete when it is created, and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.form import FLAT
from toolkit.builds.room import UNPACKED
from toolkit.pins.bases.steady import NOT_HERE, PresentBase
from toolkit.recipes.model import Bootstrap

if TYPE_CHECKING:
    from toolkit.builds.form import Choice
    from toolkit.builds.record import Record
    from toolkit.builds.request import BuildRequest
    from toolkit.definitions.definition import Definition
    from toolkit.definitions.layered import LayeredSteps
    from toolkit.pins.store import Found
    from toolkit.recipes.model import Base


@dataclass(frozen=True, slots=True)
class OwnSource:
    """A definition or a sandbox of the user's own, which the runtime is given as it is."""

    path: Path


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """All that a build needs to know.

    `source` is the definition that ctk wrote, or what the user has. `record` is what the image will remember, but for
    the audit's verdict. `base` is what of a recipe's base is on this machine. `locked` is the lock that is installed,
    and what became of the earlier one; None if nothing is installed. `lends_uv`: the build finds uv's program in
    the base's directory for it, and installs with pip if that is missing. `start` is the base
    as the definition names it: by digest, if that is known. `layers` are the steps of a layered image, None for a
    flat one; `form` says why it is flat. `files` is the state of what is copied into the image (`state_of_copied`).
    """

    request: BuildRequest
    source: Definition | OwnSource
    record: Record
    base: PresentBase = NOT_HERE
    locked: Found | None = None
    lends_uv: bool = False
    start: Base | None = None
    login: Path | None = None
    layers: LayeredSteps | None = None
    form: Choice = FLAT
    files: str = ""

    @property
    def base_size(self) -> int:
        """Bytes that the base takes in the build: as it is in a layered image, else unpacked; 0 if not known."""
        if self.layers and self.base.image is not None:
            return self.base.image.stat().st_size
        return max(local_size(self.request), unpacked_size(self.base.image))


def local_size(request: BuildRequest) -> int:
    """As `unpacked_size`, of the local file that is built from; 0 for what a registry or a directory holds."""
    base = request.base
    local = base is not None and base.bootstrap in (Bootstrap.LOCALIMAGE, Bootstrap.DOCKER_ARCHIVE)
    return unpacked_size(Path(base.reference)) if base is not None and local else 0


def unpacked_size(image: Path | None) -> int:
    """Bytes that a build from the file `image` needs; 0 if it is not an image."""
    return image.stat().st_size * UNPACKED if image is not None and image.is_file() else 0
