"""The type of a file or directory, from its content and never from its name."""

from __future__ import annotations

import difflib
from enum import Enum
from pathlib import Path

from toolkit.inventory.formats.sif import DataType, is_sif, read_sif
from toolkit.inventory.formats.squashfs import MAGIC
from toolkit.support.errors import WrongInput
from toolkit.support.os_errors import unreadable
from toolkit.support.processes import command_line

SANDBOX_MARK = ".singularity.d"
ROOT_SIGNS = ("usr", "bin", "etc", "lib", SANDBOX_MARK)
_EXT_MAGIC_AT = 0x438
_START = 2048  # bytes
_LAUNCH = b"#!/usr/bin/env run-singularity\n"  # the first bytes of a SIF
_NEVER_ZEROS = 64  # bytes, of an image: all that is left of one after a power failure are zeros


class PathKind(Enum):
    """The type of a path. The value is a description for messages."""

    SIF = "a SIF"
    OCI_SIF = "an OCI-SIF"
    SQUASHFS = "a squashfs file"
    SANDBOX = "a sandbox"
    ROOT = "a directory with a Linux system, but not a sandbox"
    DIRECTORY = "a directory, but not a sandbox"
    TAR = "a tar archive"
    GZIP = "compressed with gzip"
    EXT = "an ext file system"
    PROGRAM = "a program"
    DISK = "a virtual machine disk"
    LFS_POINTER = "a Git LFS pointer, not the file itself"
    PAGE = "a web page"
    DEFINITION = "a definition file"
    EMPTY = "empty"
    DAMAGED = "an image whose header is damaged"
    OTHER_FILE = "neither SIF nor squashfs"
    SPECIAL = "neither a file nor a directory"
    ABSENT = "not there"


# The runtime runs each of these.
IMAGES = (PathKind.SIF, PathKind.OCI_SIF, PathKind.SQUASHFS, PathKind.SANDBOX)
_DIRECTORIES = (PathKind.ROOT, PathKind.DIRECTORY)


def kind_of(path: Path) -> PathKind:
    """What `path` is. Raises WrongInput if it is there and cannot be read."""
    try:
        if path.is_dir():
            return _kind_of_directory({entry.name for entry in path.iterdir()})
        if not path.is_file():
            return PathKind.SPECIAL if path.exists() else PathKind.ABSENT
        with path.open("rb") as file:
            start = file.read(_START)
    except PermissionError as error:
        raise unreadable(path) from error
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
    if is_sif(start):
        return _kind_of_sif(path)
    return PathKind.SQUASHFS if start.startswith(MAGIC) else _kind_of_other(start)


def existing_image(path: Path) -> Path:
    """Return `path`; raise WrongInput if the runtime cannot run it."""
    kind = kind_of(path)
    if kind in IMAGES:
        return path
    if kind is PathKind.ABSENT:
        raise absent_image(path)
    if kind in _DIRECTORIES:
        raise WrongInput(f"{path} is a directory, but not a sandbox: it has no {SANDBOX_MARK}")
    if kind is PathKind.DAMAGED:
        raise damaged_header(path)
    if kind is PathKind.OTHER_FILE:
        raise WrongInput(f"{path} is not an image: neither SIF nor squashfs")
    raise WrongInput(f"{path} is not an image: it is {kind.value}", fix=fix_for(path, kind))


def absent_image(path: Path) -> WrongInput:
    """The error for an image that is not there, with one beside it whose name is like it."""
    return WrongInput(f"there is no image {path}", fix=f"{_beside(path)}Build one with `ctk build RECIPE`.")


def _beside(path: Path) -> str:
    """'first.sif is there. ' with its final space, or nothing."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return ""
    own = (path.name.lower(), path.stem.lower())
    same = [name for name in names if Path(name).stem.lower() in own and _looks_like_image(path.with_name(name))]
    stems = [name.removesuffix(".sif") for name in names if name.endswith(".sif")]
    near = same or [f"{stem}.sif" for stem in difflib.get_close_matches(path.stem, stems, n=2)]
    found = " and ".join(str(path.with_name(name)) for name in near[:2])
    return f"{found} {'is' if len(near) == 1 else 'are'} there. " if near else ""


def _looks_like_image(path: Path) -> bool:
    return path.suffix == ".sif" or (path / SANDBOX_MARK).is_dir()


def damaged_header(path: Path) -> WrongInput:
    """The error for a file that was an image."""
    message = f"{path} is damaged: its first bytes are not those of an image"
    return WrongInput(message, fix="Build it again, or copy it again from where it was built.", code="corrupt-image")


def fix_for(path: Path, kind: PathKind) -> str | None:
    """The fix if `path` should be an image but is of another type; None if there is none."""
    archive = f"If docker save made it: {command_line(['ctk', 'build', f'docker-archive:{path}'])}"
    return {
        PathKind.TAR: archive,
        PathKind.GZIP: archive,
        PathKind.EMPTY: "Build or download it again.",
        PathKind.LFS_POINTER: "git lfs pull",
        PathKind.PAGE: "Download the image again; the server may require a login.",
        PathKind.DEFINITION: "Build it first: ctk build FILE.def",
    }.get(kind)


def _kind_of_directory(names: set[str]) -> PathKind:
    if SANDBOX_MARK in names:
        return PathKind.SANDBOX
    return PathKind.ROOT if names.intersection(ROOT_SIGNS) else PathKind.DIRECTORY


def _kind_of_sif(path: Path) -> PathKind:
    try:
        return PathKind.OCI_SIF if read_sif(path).of_type(DataType.OCI_ROOT_INDEX) else PathKind.SIF
    except WrongInput:
        return PathKind.SIF  # damaged: the reader reports where


def _kind_of_other(start: bytes) -> PathKind:
    """The type of a file, from its first bytes."""
    if not start:
        return PathKind.EMPTY
    words = start.lstrip().lower()
    known = {
        PathKind.TAR: start[257:262] == b"ustar",
        PathKind.GZIP: start.startswith(b"\x1f\x8b"),
        PathKind.EXT: start[_EXT_MAGIC_AT : _EXT_MAGIC_AT + 2] == b"\x53\xef",
        PathKind.PROGRAM: start.startswith(b"\x7fELF"),
        PathKind.DISK: start.startswith(b"QFI\xfb"),
        PathKind.LFS_POINTER: start.startswith(b"version https://git-lfs"),
        PathKind.PAGE: words.startswith((b"<!doctype", b"<html")),
        PathKind.DEFINITION: words.startswith(b"bootstrap:"),
        PathKind.DAMAGED: start.startswith(_LAUNCH) or not any(start[:_NEVER_ZEROS]),
    }
    return next((kind for kind, matches in known.items() if matches), PathKind.OTHER_FILE)
