"""Open an image of any format, or raise an error that says why it cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.formats.kinds import ROOT_SIGNS, PathKind, fix_for, kind_of
from toolkit.inventory.formats.overlay import Overlay
from toolkit.inventory.formats.rootfs import LAYERED, Rootfs
from toolkit.inventory.formats.sandbox import Sandbox
from toolkit.inventory.formats.sif import DataType, Descriptor, FileSystem, Partition, PartitionType, Sif, read_sif
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.support.errors import WrongInput
from toolkit.support.processes import command_line
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from pathlib import Path


def open_image(path: Path) -> Rootfs:
    """The file system of a SIF (flat or layered), a squashfs file or a sandbox directory; close it, or use `with`.

    Needs neither a container runtime nor squashfs-tools. Raises WrongInput if there is no image at `path`, or it is
    encrypted, cut off, damaged, or of another format.
    """
    kind = kind_of(path)
    if kind in (PathKind.SANDBOX, PathKind.ROOT):
        return Rootfs(Sandbox(path), str(path), "sandbox")
    if kind is PathKind.SIF:
        return _open_sif(read_sif(path))
    if kind is PathKind.SQUASHFS:
        return Rootfs(Squashfs(path), str(path), "squashfs")
    raise _refusal(path, kind)


def _open_sif(sif: Sif) -> Rootfs:
    partitions = [(found, found.partition) for found in sif.of_type(DataType.PARTITION) if found.partition]
    system = [entry for entry in partitions if entry[1].type == PartitionType.PRIMARY_SYSTEM]
    if not system:
        raise WrongInput(f"{sif.path} has no system partition, so it contains no container", code="corrupt-image")
    overlays = [entry for entry in partitions if entry[1].type == PartitionType.OVERLAY]
    trees: list[Squashfs] = []
    try:
        for found, partition in [*overlays[::-1], system[0]]:  # the overlay added last is on top
            trees.append(_open_partition(sif, found, partition))
    except BaseException:
        for tree in trees:
            tree.close()
        raise
    if len(trees) == 1:
        return Rootfs(trees[0], str(sif.path), "flat SIF", sif)
    layers = Overlay(trees)
    return Rootfs(layers, str(sif.path), LAYERED, sif, layers.disputed)


def _open_partition(sif: Sif, found: Descriptor, partition: Partition) -> Squashfs:
    if partition.file_system == FileSystem.SQUASHFS:
        return Squashfs(sif.path, found.offset, found.size)
    if partition.file_system in (FileSystem.ENCRYPTED_SQUASHFS, FileSystem.GOCRYPTFS_SQUASHFS):
        raise WrongInput(
            f"{sif.path} is encrypted: its content cannot be read without the key",
            fix="Audit the image before encryption, or the sandbox that it was built from.",
            code="encrypted-image",
        )
    kind = partition.file_system.name.lower() if isinstance(partition.file_system, FileSystem) else "of an unknown type"
    what = "overlay" if partition.type == PartitionType.OVERLAY else "system"
    raise WrongInput(
        f"{sif.path}: its {what} partition (data object {found.id}) is {kind}; ctk reads squashfs",
        fix="Make a copy as a sandbox, then use COPY/: "
        + command_line(["apptainer", "build", "--sandbox", "COPY/", path_argument(sif.path)]),
        code="foreign-image",
    )


def _refusal(path: Path, kind: PathKind) -> WrongInput:
    """Why what is at `path` is not read, and what to do."""
    if kind is PathKind.ABSENT:
        return WrongInput(f"there is no image {path}")
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
