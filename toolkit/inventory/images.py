"""Open whatever a person calls an image, or say in one sentence why it cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory import sif as sif_format
from toolkit.inventory.overlay import Overlay
from toolkit.inventory.rootfs import Rootfs
from toolkit.inventory.sandbox import Sandbox
from toolkit.inventory.sif import DataType, Descriptor, FileSystem, Partition, PartitionType, Sif, is_sif, read_sif
from toolkit.inventory.squashfs import MAGIC, Squashfs
from toolkit.support.errors import WrongInput
from toolkit.support.processes import command_line
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from pathlib import Path

_EXT_MAGIC_AT = 0x438
_SIGNS_OF_A_ROOT = ("usr", "bin", "etc", "lib", ".singularity.d")


def open_image(path: Path) -> Rootfs:
    """The file system of a SIF (flat or layered), a squashfs file or a sandbox folder; close it, or use `with`.

    Needs neither a container runtime nor squashfs-tools. Raises WrongInput where there is no image at `path`, or it is
    encrypted, cut off, damaged, or of another format.
    """
    if path.is_dir():
        return _open_sandbox(path)
    try:
        if not path.is_file():
            there = path.exists()
            raise WrongInput(
                f"{path} is no image: it is neither a file nor a folder" if there else f"there is no image {path}"
            )
        with path.open("rb") as file:
            start = file.read(2048)
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
    if is_sif(start):
        return _open_sif(read_sif(path))
    if start.startswith(MAGIC):
        return Rootfs(Squashfs(path), str(path), "squashfs")
    raise _foreign(path, start)


def _open_sandbox(path: Path) -> Rootfs:
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
    if not names.intersection(_SIGNS_OF_A_ROOT):
        raise WrongInput(
            f"{path} is a folder, but no sandbox: it holds none of {', '.join(_SIGNS_OF_A_ROOT)}", code="foreign-image"
        )
    return Rootfs(Sandbox(path), str(path), "sandbox")


def _open_sif(sif: Sif) -> Rootfs:
    partitions = [(found, found.partition) for found in sif.of_type(DataType.PARTITION) if found.partition]
    system = [entry for entry in partitions if entry[1].type == PartitionType.PRIMARY_SYSTEM]
    if not system:
        raise _no_system(sif)
    overlays = [entry for entry in partitions if entry[1].type == PartitionType.OVERLAY]
    trees: list[Squashfs] = []
    try:
        for found, partition in [*overlays[::-1], system[0]]:  # what was added last lies uppermost
            trees.append(_open_partition(sif, found, partition))
    except BaseException:
        for tree in trees:
            tree.close()
        raise
    if len(trees) == 1:
        return Rootfs(trees[0], str(sif.path), "flat SIF", sif)
    layers = Overlay(trees)
    return Rootfs(layers, str(sif.path), "layered SIF", sif, layers.disputed)


def _open_partition(sif: Sif, found: Descriptor, partition: Partition) -> Squashfs:
    if partition.file_system == FileSystem.SQUASHFS:
        return Squashfs(sif.path, found.offset, found.size)
    if partition.file_system in (FileSystem.ENCRYPTED_SQUASHFS, FileSystem.GOCRYPTFS_SQUASHFS):
        raise WrongInput(
            f"{sif.path} is encrypted: what it holds cannot be read without its key",
            fix="Audit the image before it is encrypted, or the sandbox that it was built from.",
            code="encrypted-image",
        )
    kind = partition.file_system.name.lower() if isinstance(partition.file_system, FileSystem) else "of an unknown kind"
    what = "overlay" if partition.type == PartitionType.OVERLAY else "system"
    raise WrongInput(
        f"{sif.path}: its {what} partition (data object {found.id}) is {kind}; ctk reads squashfs",
        fix="Make a flat copy, then name COPY/: "
        + command_line(["apptainer", "build", "--sandbox", "COPY/", path_argument(sif.path)]),
        code="foreign-image",
    )


def _no_system(sif: Sif) -> WrongInput:
    if sif.of_type(sif_format.DataType.OCI_ROOT_INDEX):
        return WrongInput(
            f"{sif.path} is an OCI-SIF, as SingularityCE 4 makes them; ctk reads native SIFs",
            fix="Pull it again without --oci.",
            code="foreign-image",
        )
    return WrongInput(f"{sif.path} has no system partition: there is no container in it", code="corrupt-image")


def _foreign(path: Path, start: bytes) -> WrongInput:
    """Say what the file is, as far as its first octets tell."""
    if not start:
        return WrongInput(f"{path} is empty", fix="Build or fetch it again.", code="corrupt-image")
    words = start.lstrip().lower()
    archive = f"If docker save made it: {command_line(['ctk', 'build', f'docker-archive:{path}'])}"
    known: list[tuple[bool, str, str | None]] = [
        (start[257:262] == b"ustar", "a tar archive", archive),
        (start.startswith(b"\x1f\x8b"), "compressed with gzip", archive),
        (start[_EXT_MAGIC_AT : _EXT_MAGIC_AT + 2] == b"\x53\xef", "an ext file system", None),
        (start.startswith(b"\x7fELF"), "a program", None),
        (start.startswith(b"QFI\xfb"), "a virtual machine's disk", None),
        (start.startswith(b"version https://git-lfs"), "a Git LFS pointer, not the file itself", "git lfs pull"),
        (words.startswith((b"<!doctype", b"<html")), "a web page", "Fetch the image again; perhaps log in first."),
        (words.startswith(b"bootstrap:"), "a definition file", "Build it first: ctk build FILE.def"),
    ]
    what, fix = next(((text, fix) for matches, text, fix in known if matches), ("no SIF and no squashfs", None))
    return WrongInput(f"{path} is no image that ctk reads: it is {what}", fix=fix, code="foreign-image")
