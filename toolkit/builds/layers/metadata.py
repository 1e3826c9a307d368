"""The metadata of a layered image: what `apptainer build` of the same definition would leave.

Source: Apptainer 1.4.5, internal/pkg/build/metadata.go and internal/pkg/build/assemblers/sif.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.formats.sif import DataType, FileSystem, Partition, PartitionType, read_sif
from toolkit.inventory.formats.sif_edit import NewObject, edit_sif

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.builds.layers.layer import Layer
    from toolkit.inventory.formats.sif import Descriptor

INSPECT_OBJECT = "inspect-metadata.json"
_OCI_CONFIG = "oci-config.json"  # a build from a local SIF keeps it as well


def assemble(
    copy: Path, layers: Sequence[Layer], definition: str, metadata: bytes, more: Sequence[NewObject] = ()
) -> None:
    """Make the layered image of a copy of its base's SIF, in place.

    Partitions of the base stay, and `oci-config.json`; its definition, metadata, records and signatures go.
    `metadata` is what `inspect_metadata` returns. Raises WrongInput if the base has too few free descriptors.
    """
    partition = Partition(FileSystem.SQUASHFS, PartitionType.OVERLAY, read_sif(copy).architecture)
    new = [
        NewObject(DataType.DEFINITION, "", definition.encode(errors="surrogateescape")),
        NewObject(DataType.GENERIC_JSON, INSPECT_OBJECT, metadata),
        *(NewObject(DataType.PARTITION, layer.name, layer.path, partition=partition) for layer in layers),
        *more,
    ]
    edit_sif(copy, drop=lambda found: not _stays(found), add=new)


def _stays(found: Descriptor) -> bool:
    return found.partition is not None or (found.data_type, found.name) == (DataType.GENERIC_JSON, _OCI_CONFIG)
