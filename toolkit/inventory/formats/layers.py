"""The names of an image's layers: what its table of data objects says, and what ctk recorded when it built the image.

Each layer of an image of ctk is an overlay partition named `ctk-layer-HASH`, and holds the empty file
`/.singularity.d/ctk-layer-HASH`. A container without that file runs without the layer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from toolkit.inventory.formats.kinds import PathKind, kind_of
from toolkit.inventory.formats.sif import DataType, PartitionType, Sif, read_sif
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"ctk-layer-[0-9a-f]{32}")
_RECORD = "ctk.json"


class Layers(NamedTuple):
    """The names of an image's layers from the lowest to the uppermost, and its UUID in hexadecimal.

    The UUID is that of a SIF: it changes with each build, and stays where `apptainer sif del` removes an object.
    """

    names: tuple[str, ...] = ()
    uuid: str = ""


NONE = Layers()


def is_layer_name(text: str) -> bool:
    """Whether `text` is the name of a layer of ctk's."""
    return _NAME.fullmatch(text) is not None


def layer_names(sif: Sif | Path) -> tuple[str, ...]:
    """The names of the layers in a SIF, from the lowest to the uppermost; other overlay partitions are omitted.

    Raises WrongInput if the file is not a SIF that ctk can read.
    """
    found = sif if isinstance(sif, Sif) else read_sif(sif)
    return tuple(
        descriptor.name
        for descriptor in found.of_type(DataType.PARTITION)
        if descriptor.partition is not None
        and descriptor.partition.type == PartitionType.OVERLAY
        and is_layer_name(descriptor.name)
    )


def layers_of(image: Path) -> Layers:
    """The layers that a container of `image` must have; none for a sandbox or a squashfs file.

    Raises WrongInput if the image is a SIF that ctk cannot read, or was built with a layer that the file does not have
    any more (`layer-removed`).
    """
    if kind_of(image) is not PathKind.SIF:
        return NONE
    sif = read_sif(image)
    require_recorded(sif)
    return Layers(layer_names(sif), sif.uuid)


def require_recorded(sif: Sif) -> None:
    """Raise WrongInput (`layer-removed`) if an image was built with a layer that the file does not have any more."""
    names = layer_names(sif)
    lost = next((name for name in _recorded(sif) if name not in names), None)
    if lost is not None:
        raise WrongInput(
            f"{sif.path} was built with the layer {lost}, and the file no longer contains it",
            fix="Build the image again, or copy it again from where it was built. Without the layer, the container "
            "would run a different image.",
            code="layer-removed",
        )


def _recorded(sif: Sif) -> tuple[str, ...]:
    """The names in ctk's own record of the image (`layers` in docs/schemas/image.json), if it can be read."""
    try:
        names = (sif.json_object(_RECORD) or {}).get("layers")
    except WrongInput:
        return ()
    found = names if isinstance(names, list) else []
    return tuple(name for name in found if isinstance(name, str) and is_layer_name(name))
