"""The plan of a build: complete when it is created, and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.form import FLAT
from toolkit.builds.room import UNKNOWN, UNPACKED, Room
from toolkit.builds.target import TargetKind
from toolkit.pins.bases.steady import NOT_HERE, PresentBase
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import WrongInput

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
    def room(self) -> Room:
        """What the base takes in the build: as it is in a layered image, else unpacked."""
        if self.layers and self.base.image is not None:
            size = self.base.image.stat().st_size
            return Room(size, size)
        return room_for(self.base.image, self.request) if self.base.image is not None else local_room(self.request)


def local_room(request: BuildRequest) -> Room:
    """As `room_for`, of the sandbox or the local base that is built from; not known for what a registry holds."""
    base = request.base
    if request.target.kind is TargetKind.SANDBOX:
        return room_for(Path(request.target.text), request)
    local = base is not None and base.bootstrap in (Bootstrap.LOCALIMAGE, Bootstrap.DOCKER_ARCHIVE)
    return room_for(Path(base.reference), request) if base is not None and local else UNKNOWN


def room_for(image: Path, request: BuildRequest) -> Room:
    """What a build from `image` needs. Of a squashfs, its inodes tell it; of another file, its size gives an estimate.

    The new image is taken to be as large as the one that it is built from; of a sandbox, nobody knows its packed size.
    """
    from toolkit.inventory.formats.unpacked import directory_size, unpacked_size

    if image.is_dir():
        size = directory_size(image)
        return Room(size, size if request.sandbox else 0)
    if not image.is_file():
        return UNKNOWN
    packed = image.stat().st_size
    try:
        unpacked = unpacked_size(image)
    except WrongInput:  # the runtime reads more formats, and knows what is wrong
        return Room(packed * UNPACKED, packed)
    return Room(unpacked + packed, unpacked if request.sandbox else packed)
