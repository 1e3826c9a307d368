"""The layer between two directories, as a tree: what a layered build would pack of the changes."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path


@dataclass(eq=False)
class Node:
    """An entry of a layer; `source` is where its content is on this machine."""

    kind: EntryKind
    source: Path | None = None
    inner: dict[str, Node] = field(default_factory=dict)
    opaque: bool = False


class LayerTree:
    """A tree of nodes, with whiteouts."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.read: list[str] = []

    def children(self, directory: Node) -> Mapping[str, Node]:
        return directory.inner

    def target(self, symlink: Node) -> str:
        assert symlink.source is not None
        return str(symlink.source.readlink())

    def size(self, file: Node) -> int:
        assert file.source is not None
        return file.source.stat().st_size

    def mode(self, _directory: Node) -> int:
        return 0o755

    def open(self, file: Node) -> IO[bytes]:
        assert file.source is not None
        self.read.append(file.source.name)
        return io.BytesIO(file.source.read_bytes())

    def is_opaque(self, directory: Node) -> bool:
        return directory.opaque

    def close(self) -> None:
        """Nothing is open."""


def layer_between(before: Path, after: Path, *, opaque: Collection[str] = (), copied_up: bool = False) -> LayerTree:
    """What turns `before` into `after`. Those in `opaque` hide what lies below; `copied_up`: all else is there, too."""
    return LayerTree(_directory(before, after, after, opaque, copied_up))


def _directory(before: Path | None, after: Path, top: Path, opaque: Collection[str], copied_up: bool) -> Node:
    hides = str(after.relative_to(top)) in opaque
    below = None if hides or before is None or before.is_symlink() or not before.is_dir() else before
    made = Node(EntryKind.DIRECTORY, after, opaque=hides)
    names = {path.name for directory in filter(None, (below, after)) for path in directory.iterdir()}
    for name in sorted(names):
        old, new = below and below / name, after / name
        if new.is_dir() and not new.is_symlink():
            inner = _directory(old if old and old.exists() else None, new, top, opaque, copied_up)
            same = old is not None and old.is_dir() and not old.is_symlink()
            if inner.inner or inner.opaque or copied_up or not same:
                made.inner[name] = inner
        elif new.is_symlink():
            if copied_up or old is None or not old.is_symlink() or old.readlink() != new.readlink():
                made.inner[name] = Node(EntryKind.SYMLINK, new)
        elif new.exists():
            is_file = old is not None and old.is_file() and not old.is_symlink()
            if copied_up or not is_file or old is None or old.read_bytes() != new.read_bytes():
                made.inner[name] = Node(EntryKind.FILE, new)
        else:
            made.inner[name] = Node(EntryKind.WHITEOUT)
    return made
