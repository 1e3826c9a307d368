"""Open an image of any format, or raise an error that says why it cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.formats.kinds import ROOT_SIGNS, PathKind, absent_image, damaged_header, fix_for, kind_of
from toolkit.inventory.formats.layers import require_recorded
from toolkit.inventory.formats.overlay import Overlay
from toolkit.inventory.formats.rootfs import LAYERED, Rootfs
from toolkit.inventory.formats.sandbox import Sandbox, UpperDirectory
from toolkit.inventory.formats.sif import Descriptor, FileSystem, PartitionType, Sif, read_sif
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.support.errors import WrongInput
from toolkit.support.processes import command_line
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.inventory.formats.tree import Tree


def open_image(path: Path) -> Rootfs:
    """The file system of a SIF (flat or layered), a squashfs file or a sandbox directory; close it, or use `with`.

    Needs neither a container runtime nor squashfs-tools. Raises WrongInput if there is no image at `path`, or it is
    encrypted, cut off, damaged, of another format, or lacks one of its layers.
    """
    kind = kind_of(path)
    if kind in (PathKind.SANDBOX, PathKind.ROOT):
        return Rootfs(Sandbox(path), str(path), "sandbox")
    if kind is PathKind.SIF:
        return _open_sif(read_sif(path))
    if kind is PathKind.SQUASHFS:
        return Rootfs(Squashfs(path), str(path), "squashfs")
    raise _refusal(path, kind)


def open_step(upper: Path, below: Sequence[Tree]) -> Rootfs:
    """What a step of a layered build sees: the upper directory over the trees `below`, the uppermost first."""
    return Rootfs(Overlay([UpperDirectory(upper), *below]), "what the step left", LAYERED)


def _open_sif(sif: Sif) -> Rootfs:
    require_recorded(sif)
    trees = open_partitions(sif)
    if len(trees) == 1:
        return Rootfs(trees[0], str(sif.path), "flat SIF", sif)
    layers = Overlay(trees)
    return Rootfs(layers, str(sif.path), LAYERED, sif, layers.disputed)


def mounted_partitions(sif: Sif) -> tuple[Descriptor, ...]:
    """The partitions that a container consists of, the lowest first: the root file system, then overlays in the order
    of their descriptors. The runtime ignores overlays of another group (Apptainer 1.4.5, pkg/image/sif.go).

    Raises WrongInput if there is no root file system.
    """
    partitions = [(found, found.partition.type) for found in sif.descriptors if found.partition is not None]
    system = next((found for found, what in partitions if what == PartitionType.PRIMARY_SYSTEM), None)
    if system is None:
        raise WrongInput(f"{sif.path} has no system partition, so it contains no container", code="corrupt-image")
    overlays = [found for found, what in partitions if what == PartitionType.OVERLAY]
    return (system, *(found for found in overlays if system.group in (0, found.group)))


def open_partitions(sif: Sif) -> list[Squashfs]:
    """The file systems of a SIF, the uppermost first; close them. Raises WrongInput as `open_image` does."""
    trees: list[Squashfs] = []
    try:
        for found in reversed(mounted_partitions(sif)):
            trees.append(open_partition(sif, found))
    except BaseException:
        for tree in trees:
            tree.close()
        raise
    return trees


def open_partition(sif: Sif, found: Descriptor) -> Squashfs:
    """The tree of one partition. Raises WrongInput if it is not squashfs."""
    partition = found.partition
    if partition is None:
        raise ValueError(f"data object {found.id} is no partition")
    if partition.file_system == FileSystem.SQUASHFS:
        return Squashfs(sif.path, found.offset, found.size)
    if partition.file_system in (FileSystem.ENCRYPTED_SQUASHFS, FileSystem.GOCRYPTFS_SQUASHFS):
        raise WrongInput(
            f"{sif.path} is encrypted: its content cannot be read without the key",
            fix="Audit the image before encryption, or the sandbox that it was built from.",
            code="encrypted-image",
        )
    kind = partition.file_system.name.lower() if isinstance(partition.file_system, FileSystem) else "of an unknown type"
    if partition.type == PartitionType.OVERLAY:  # a build by the runtime would leave it out
        what, fix = "overlay", None
    else:
        copy = command_line(["apptainer", "build", "--sandbox", "COPY/", path_argument(sif.path)])
        what, fix = "system", f"Make a copy as a sandbox, then use COPY/: {copy}"
    raise WrongInput(
        f"{sif.path}: its {what} partition (data object {found.id}) is {kind}; ctk reads squashfs",
        fix=fix,
        code="foreign-image",
    )


def _refusal(path: Path, kind: PathKind) -> WrongInput:
    """Why what is at `path` is not read, and what to do."""
    if kind is PathKind.ABSENT:
        return absent_image(path)
    if kind is PathKind.DAMAGED:
        return damaged_header(path)
    if kind is PathKind.SPECIAL:
        return WrongInput(f"{path} is not an image: it is {kind.value}")
    if kind is PathKind.OCI_SIF:
        message = f"{path} is an OCI-SIF, a format of SingularityCE 4; ctk reads native SIF files"
        return WrongInput(message, fix="Pull it again without --oci.", code="foreign-image")
    if kind is PathKind.DIRECTORY:
        message = f"{path} is a directory, but not a sandbox: it has none of {', '.join(ROOT_SIGNS)}"
        return WrongInput(message, code="foreign-image")
    if kind is PathKind.EMPTY:
        return WrongInput(f"{path} is empty", fix=fix_for(path, kind), code="corrupt-image")
    message = f"{path} is not an image that ctk can read: it is {kind.value}"
    return WrongInput(message, fix=fix_for(path, kind), code="foreign-image")
