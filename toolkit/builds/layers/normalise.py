"""A step's upper directory as every overlayfs understands it, and as small as it can be.

The kernel marks a directory that hides the one below as opaque with an attribute; a layer that is read without
privileges may only have whiteouts (character device 0,0). Runs as root of the user's namespace.
Source: Linux, Documentation/filesystems/overlayfs.rst.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from toolkit.builds.layers.below import Key, Lower, Seen

OVERLAY_PREFIXES = ("user.fuseoverlayfs.", "user.overlay.", "trusted.overlay.")
_OPAQUE = "user.overlay.opaque"  # the only one that the overlay of a step writes
# A host that mounts an image with fuse-overlayfs takes a name with this prefix for a deletion (fuse-overlayfs, main.c).
_WHITEOUT_PREFIX = ".wh."
METADATA = ".singularity.d"
MARK = "ctk-layer-"


class CannotNormalise(Exception):  # noqa: N818 - it is an answer
    """The tree cannot be a layer that looks like the flat image; the text says why."""


@dataclass(slots=True)
class Changes:
    """What the walk found: paths of files below with several links that the layer changes or hides, by inode."""

    touched: dict[Key, set[str]] = field(default_factory=dict)


def normalise(upper: str, lower: Lower) -> Changes:
    """Make the tree at `upper` normal, and say what matters for hard links. Raises CannotNormalise, OSError."""
    changes = Changes()
    _Walk(upper, lower, changes).directory("", lower.root, hides=False)
    return changes


@dataclass(slots=True)
class _Walk:
    upper: str
    lower: Lower
    changes: Changes

    def directory(self, path: str, below: Seen | None, *, hides: bool) -> None:
        """One directory; `below` is what the base has at the same path, `hides` if nothing of it may be seen."""
        here = os.path.join(self.upper, path)
        attributes = private_attributes(here)
        opaque = attributes.get(_OPAQUE) == b"y"
        _strip(here, attributes)
        hides = hides or opaque
        hidden = self.lower.children(below) if below is not None and below.is_directory else {}
        kept = frozenset(os.listdir(here))
        for name in kept:
            self._entry(os.path.join(path, name), hidden.get(name), hides=hides)
        if hides:
            for name, entry in hidden.items():
                if name not in kept and not self._is_own_mark(path, name):
                    self._removed(os.path.join(path, name), entry)
                    whiteout(os.path.join(here, name))
        if mark := next((name for name in os.listdir(here) if name.startswith(_WHITEOUT_PREFIX)), None):
            what = os.path.join(path, mark)
            raise CannotNormalise(f"the build makes, changes or removes /{what}, a name that some overlays misread")
        if path and below is not None and below.is_directory and not os.listdir(here) and self._same(here, below):
            os.rmdir(here)

    def _entry(self, path: str, below: Seen | None, *, hides: bool) -> None:
        here = os.path.join(self.upper, path)
        state = os.lstat(here)
        if stat.S_ISDIR(state.st_mode):
            if below is not None and not below.is_directory:
                self._removed(path, below)
            self.directory(path, below, hides=hides)
            return
        if below is not None:
            self._removed(path, below)
        if stat.S_ISCHR(state.st_mode) and state.st_rdev == 0:
            if below is None or self._is_own_mark(*os.path.split(path)):
                os.unlink(here)
            return
        _strip(here, private_attributes(here))

    def _is_own_mark(self, directory: str, name: str) -> bool:
        """The mark of an earlier layer is never hidden: a check before the program starts looks for it."""
        return directory == METADATA and name.startswith(MARK)

    def _removed(self, path: str, below: Seen) -> None:
        """What is below at `path` is not seen any more. Remember files that have other names."""
        for where, entry in self.lower.files(below, path):
            if entry.kind is EntryKind.FILE and self.lower.status(entry).links > 1:
                self.changes.touched.setdefault(entry.key, set()).add(where)

    def _same(self, here: str, below: Seen) -> bool:
        """Whether a directory that was copied from below is as it was."""
        state, old = os.lstat(here), self.lower.status(below)
        return (state.st_mode, state.st_uid, state.st_gid, own_attributes(here)) == (
            *(old.mode, old.uid, old.gid),
            {name: value for name, value in old.attributes.items() if not name.startswith(OVERLAY_PREFIXES)},
        )


def _strip(path: str, attributes: dict[str, bytes]) -> None:
    for name in attributes:
        os.removexattr(path, name, follow_symlinks=False)


def whiteout(path: str) -> None:
    """Hide what lower trees have at `path`. Raises CannotNormalise where the kernel is too old."""
    try:
        os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
    except PermissionError as error:
        raise CannotNormalise(
            "this kernel lets users make no whiteouts, which mark deleted files (Linux 5.8 or newer does)"
        ) from error


def own_attributes(path: str) -> dict[str, bytes]:
    """The extended attributes of a file but for those of overlays."""
    return {name: value for name, value in _attributes(path).items() if not name.startswith(OVERLAY_PREFIXES)}


def private_attributes(path: str) -> dict[str, bytes]:
    """The extended attributes with which an overlay keeps notes."""
    return {name: value for name, value in _attributes(path).items() if name.startswith(OVERLAY_PREFIXES)}


def _attributes(path: str) -> dict[str, bytes]:
    names = os.listxattr(path, follow_symlinks=False)
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
