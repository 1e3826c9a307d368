"""Layered images in builds by the runtime, which unpacks the root partition of a base and leaves out its layers.

Source: Apptainer 1.4.5, internal/pkg/build/sources/packer_sif.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.layers.flatten import flatten
from toolkit.inventory.formats.images import mounted_partitions
from toolkit.inventory.formats.kinds import PathKind, kind_of
from toolkit.inventory.formats.layers import require_recorded
from toolkit.inventory.formats.sif import read_sif
from toolkit.pins.bases.steady import unchanged
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import WrongInput
from toolkit.support.processes import command_line
from toolkit.support.staging import staging
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from toolkit.builds.state import BuildState
    from toolkit.recipes.model import Base
    from toolkit.runtime.engine import BuildOptions

_LEFT_OUT = "the container runtime builds from its first partition only, and leaves out the layers"


def is_layered(image: Path) -> bool:
    """Whether `image` is a SIF with overlay partitions. False for one that cannot be read: its reader says why."""
    try:
        return kind_of(image) is PathKind.SIF and len(mounted_partitions(read_sif(image))) > 1
    except WrongInput:
        return False


def layered_base(base: Base | None) -> Path | None:
    """The path of a base on this machine that is a layered SIF; None for any other."""
    return base.path if base is not None and base.bootstrap == Bootstrap.LOCALIMAGE and is_layered(base.path) else None


def flat_name(image: Path) -> str:
    """The name of the flat form of a layered image: `team-flat.sif`."""
    return f"{image.stem}-flat.sif"


def merge_command(image: Path) -> str:
    """The command that makes the flat form of a layered image."""
    return command_line(["ctk", "build", path_argument(image), "--flat", "-o", flat_name(image)])


def refuse_layered(base: Base, what: str) -> None:
    """Raise WrongInput (`layered-base`) if the runtime would build from the root partition of `base` alone."""
    if (image := layered_base(base)) is not None:
        raise WrongInput(
            f"{what} starts from {image}, which is layered: {_LEFT_OUT}",
            fix=f"Merge its layers first, then start from {flat_name(image)}: {merge_command(image)}",
            code="layered-base",
        )


def require_layers(image: Path) -> None:
    """Raise WrongInput (`nothing-to-merge`) if the SIF `image` has one partition."""
    sif = read_sif(image)
    require_recorded(sif)
    if len(mounted_partitions(sif)) == 1:
        raise WrongInput(f"{image} has no layers to merge", code="nothing-to-merge")


def over_flat_base(text: str, base: Base) -> str:
    """The definition `text` over the layered `base` as one over its flat form, next to which the runtime is started."""
    note = f"# Made of a layered image: {merge_command(Path(base.path.name))}"
    before, line, after = text.partition(f"\nFrom: {base.reference}\n")
    if not line:  # the runtime would leave out the layers
        raise ValueError(f"the definition does not start from {base.reference}")
    return f"{before}\n{note}\nFrom: {flat_name(base.path)}\n{after}"


@dataclass(frozen=True, slots=True)
class MergeLayers:
    """The flat form of the layered SIF `source` is written to `image`.

    `is_target`: it is what is built, not its base.
    """

    source: Path
    image: Path
    scratch: Path
    options: BuildOptions
    is_target: bool = False

    def shell(self) -> str:
        """ctk alone can do it."""
        return command_line(["ctk", "build", str(self.source), "--flat", "-o", str(self.image)])

    def run(self, state: BuildState) -> None:
        state.listener.on_step(f"merging the layers of {self.source.name}")
        if self.is_target:
            state.begin_log(self.shell())
        with unchanged(state.plan.request.base_state), staging(self.scratch) as scratch:
            flatten(self.source, self.image, scratch, self.options, state.listener)
