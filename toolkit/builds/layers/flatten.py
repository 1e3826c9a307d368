"""Merge the partitions of a layered image into one: the form for sharing, and for programs that read one partition."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from toolkit.builds.context import Listener
from toolkit.builds.layers import clear
from toolkit.builds.layers.pack import find_tool, pack, run_tool
from toolkit.builds.record import OBJECT_NAME
from toolkit.inventory.contents.sbom import OBJECT_NAME as SBOM_NAME
from toolkit.inventory.formats.images import mounted_partitions, open_partition
from toolkit.inventory.formats.sif import DataType, FileSystem, Partition, PartitionType, read_sif
from toolkit.inventory.formats.sif_digests import OBJECT_NAME as DIGESTS_NAME
from toolkit.inventory.formats.sif_edit import NewObject, edit_sif, empty_sif, extract
from toolkit.inventory.formats.tree import EntryKind
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from toolkit.inventory.formats.sif import Descriptor, Sif
    from toolkit.inventory.formats.tree import Tree
    from toolkit.runtime.engine import BuildOptions

_WHAT = "merging the layers"
_SILENT = Listener()
_MARKER = "ctk-layer-"  # of the files in /.singularity.d, one for each layer


def flatten(
    image: Path,
    output: Path,
    scratch: Path,
    options: BuildOptions,
    listener: Listener = _SILENT,
) -> None:
    """Write the flat form of the layered SIF `image` to the new file `output`, by way of the directory `scratch`.

    Its other objects stay, but for its signatures, and for ctk's record and list of packages, which the caller writes.
    The caller removes `scratch`, and `output` after an error. Raises WrongInput if a partition is not squashfs,
    ProgramFailed if squashfs-tools fail, OSError of a full disk.
    """
    sif = read_sif(image.absolute())
    tree, squashed = scratch / "tree", scratch / "flat.squashfs"
    unpack(sif, tree, scratch, listener)
    listener.on_part("packing")
    pack(tree, squashed, options.compression, options.cores, options.memory, listener.on_progress)
    system = Partition(FileSystem.SQUASHFS, PartitionType.PRIMARY_SYSTEM, sif.architecture)
    merged = mounted_partitions(sif)
    kept = [_kept(sif, found, scratch) for found in sif.descriptors if found not in merged and not _goes(found)]
    empty_sif(image, output)
    new = [NewObject(DataType.PARTITION, "", squashed, partition=system), *kept]
    edit_sif(output, drop=lambda _found: False, add=new)


def unpack(sif: Sif, tree: Path, scratch: Path, listener: Listener = _SILENT) -> None:
    """Write the file system of an image to the new directory `tree`: its partitions over each other, as the kernel
    mounts them. Owners are those of this user's namespace. The markers of the layers are left out.
    """
    system, *layers = mounted_partitions(sif)
    listener.on_part("unpacking the base")
    _unpack(sif, system, tree, listener)
    for number, layer in enumerate(layers, start=1):
        listener.on_part(f"unpacking layer {number} of {len(layers)}")
        squashfs = open_partition(sif, layer)
        try:
            entries = list(_entries(squashfs))
        finally:
            squashfs.close()
        _clear(tree, entries, scratch)
        _unpack(sif, layer, tree, listener)
        _clear(tree, [entry for entry in entries if entry[0] is EntryKind.WHITEOUT], scratch)
    markers = [(EntryKind.FILE, f".singularity.d/{layer.name}") for layer in layers if layer.name.startswith(_MARKER)]
    _clear(tree, markers, scratch)


def _unpack(sif: Sif, partition: Descriptor, tree: Path, listener: Listener) -> None:
    tool = find_tool("unsquashfs", "which reads the layers", "Install squashfs-tools.")
    place = ["-offset", str(partition.offset), "-dest", str(tree)]
    run_tool(_WHAT, [tool, "-force", *place, str(sif.path)], listener.on_progress)


def _entries(tree: Tree) -> Iterator[tuple[EntryKind, str]]:
    """All paths of a layer, each directory before what is in it."""
    directories = [("", tree.root)]
    while directories:
        above, directory = directories.pop()
        for name, entry in tree.children(directory).items():
            yield entry.kind, f"{above}{name}"
            if entry.kind is EntryKind.DIRECTORY:
                directories.append((f"{above}{name}/", entry))


def _clear(tree: Path, entries: Iterable[tuple[EntryKind, str]], scratch: Path) -> None:
    """Remove from `tree` what a layer with these entries hides or replaces."""
    listed = scratch / "entries"
    marked = (("d" if kind is EntryKind.DIRECTORY else "x", path) for kind, path in entries)
    listed.write_bytes(b"".join(os.fsencode(f"{mark}{path}\0") for mark, path in marked))
    run_tool(_WHAT, [sys.executable, "-I", "-S", clear.__file__, str(tree), str(listed)])


def _goes(found: Descriptor) -> bool:
    """Signatures are of what is not there any more; ctk's record names the layers, and is written with the list."""
    return found.data_type == DataType.SIGNATURE or found.name in (OBJECT_NAME, SBOM_NAME, DIGESTS_NAME)


def _kept(sif: Sif, found: Descriptor, scratch: Path) -> NewObject:
    content = scratch / f"object-{found.id}"
    extract(sif, found, content)
    if not isinstance(found.data_type, DataType):
        raise WrongInput(f"{sif.path}: data object {found.id} is of an unknown type", code="foreign-image")
    return NewObject(found.data_type, found.name, content, found.group, found.partition)
