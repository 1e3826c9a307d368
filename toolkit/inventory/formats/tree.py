"""The interface of every image reader: a tree of entries, none of whose symlinks are followed."""

from __future__ import annotations

from enum import Enum
from typing import IO, TYPE_CHECKING, Any, Protocol

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Mapping


class EntryKind(Enum):
    """What an entry of a directory is. A whiteout (character device 0,0) hides that name in lower layers."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    WHITEOUT = "whiteout"
    OTHER = "other"


class Tree(Protocol):
    """One file system. Entries come from this tree and go back into it; nothing is read before it is asked for.

    An entry has a `kind` (EntryKind). Its other attributes are internal to the reader.

    Every method raises WrongInput (code `corrupt-image`) if the image is damaged.
    """

    @property
    def root(self) -> Any:
        """The entry of the topmost directory."""

    def children(self, directory: Any) -> Mapping[str, Any]:
        """The entries of a directory by name."""

    def target(self, symlink: Any) -> str:
        """The target of a symlink, unresolved."""

    def size(self, file: Any) -> int:
        """Bytes of a file."""

    def mode(self, entry: Any) -> int:
        """The permission bits of a file or directory."""

    def open(self, file: Any) -> IO[bytes]:
        """A file to read and seek in; only the parts that are read are fetched."""

    def is_opaque(self, directory: Any) -> bool:
        """Whether, in an overlay, this directory hides the lower layer's directory whole."""

    def close(self) -> None:
        """Close the file."""


class Unreadable(WrongInput):
    """A directory or file of a sandbox that this user may not read."""


def corrupt(label: str, reason: str) -> WrongInput:
    """The error for a damaged image; `label` is its path."""
    return WrongInput(
        f"{label} is damaged: {reason}",
        fix="Download or build it again, and compare its size with the original.",
        code="corrupt-image",
    )
