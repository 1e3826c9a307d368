"""A sandbox directory as a tree; its symlinks are never followed by the kernel, which would lead out of the image."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from toolkit.inventory.formats.tree import EntryKind, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping


class SandboxEntry(NamedTuple):
    """A name in a directory, and its path on this machine."""

    kind: EntryKind
    path: str


class Sandbox:
    """The directory `path` as the root of an image."""

    def __init__(self, path: Path) -> None:
        self.root = SandboxEntry(EntryKind.DIRECTORY, os.fspath(path))
        self._directories: dict[str, dict[str, SandboxEntry]] = {}

    def children(self, directory: SandboxEntry) -> Mapping[str, SandboxEntry]:
        """The entries of a directory by name. Raises WrongInput if this user may not look into it."""
        if directory.path not in self._directories:
            try:
                with os.scandir(directory.path) as entries:
                    self._directories[directory.path] = {
                        entry.name: SandboxEntry(_kind(entry), entry.path) for entry in entries
                    }
            except OSError as error:
                raise _unreadable(directory.path, error) from error
        return self._directories[directory.path]

    def target(self, symlink: SandboxEntry) -> str:
        """The target of a symlink."""
        return str(Path(symlink.path).readlink())

    def size(self, file: SandboxEntry) -> int:
        """Bytes of a file."""
        return os.lstat(file.path).st_size

    def mode(self, entry: SandboxEntry) -> int:
        """The permission bits of a file or directory."""
        return stat.S_IMODE(os.lstat(entry.path).st_mode)

    def open(self, file: SandboxEntry) -> IO[bytes]:
        """A file to read and seek in. Raises WrongInput if this user may not read it."""
        try:
            return os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
        except OSError as error:
            raise _unreadable(file.path, error) from error

    def is_opaque(self, _directory: SandboxEntry) -> bool:
        """A sandbox is no layer."""
        return False

    def close(self) -> None:
        """No open files to close."""


class UpperDirectory(Sandbox):
    """The upper directory of a mounted overlay, before it becomes a layer: it has the marks of that mount."""

    def is_opaque(self, directory: SandboxEntry) -> bool:
        """Whether it has the extended attribute of the kernel or of fuse-overlayfs (fuse-overlayfs, main.c)."""
        for name in ("user.overlay.opaque", "user.fuseoverlayfs.opaque", "trusted.overlay.opaque"):
            with contextlib.suppress(OSError):
                if os.getxattr(directory.path, name, follow_symlinks=False) == b"y":
                    return True
        return False


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return EntryKind.SYMLINK
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.DIRECTORY
    if entry.is_file(follow_symlinks=False):
        return EntryKind.FILE
    status = entry.stat(follow_symlinks=False)
    return EntryKind.WHITEOUT if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0 else EntryKind.OTHER


def _unreadable(path: str, error: OSError) -> Unreadable:
    return Unreadable(
        f"cannot read {path}: {error.strerror}",
        fix="Run ctk as the user who built the sandbox, or build an image from it: ctk build IMAGE.sif SANDBOX/",
    )
