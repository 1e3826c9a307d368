"""What a layer lies over, as the kernel's overlayfs shows it: only a character device 0,0 hides a name of a lower tree.

`toolkit.inventory.formats.overlay` honours every mark that any overlay knows, which is right for foreign images: here a
file of the base that is called `.wh.x` is a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolkit.inventory.formats.images import open_partitions
from toolkit.inventory.formats.sif import read_sif
from toolkit.inventory.formats.squashfs import SquashEntry, Squashfs
from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolkit.inventory.formats.status import Status


class Key(NamedTuple):
    """One inode: the number of the tree, and where the inode is in it. Hard links have the same key."""

    tree: int
    reference: int


class Seen(NamedTuple):
    """An entry that is seen below a layer: its kind, and where it comes from; several places for a directory."""

    kind: EntryKind
    sources: tuple[tuple[int, SquashEntry], ...]

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.kind is EntryKind.DIRECTORY

    @property
    def key(self) -> Key:
        """The inode, of a directory that of the uppermost tree."""
        number, entry = self.sources[0]
        return Key(number, entry.reference)


class Lower:
    """The trees of an image and of the layers over it; close it."""

    def __init__(self, trees: Sequence[Squashfs]) -> None:
        self.trees = tuple(trees)  # the uppermost first
        self.names = [f"{tree.label} {len(trees) - number}" for number, tree in enumerate(trees)]
        self.root = Seen(EntryKind.DIRECTORY, tuple((number, tree.root) for number, tree in enumerate(self.trees)))
        self._known: dict[tuple[tuple[int, SquashEntry], ...], dict[str, Seen]] = {}

    @classmethod
    def open(cls, image: Path, layers: Sequence[Path]) -> Lower:
        """The SIF `image` and the squashfs files over it, the lowest first."""
        trees = open_partitions(read_sif(image))
        try:
            for layer in layers:
                trees.insert(0, Squashfs(layer))
        except BaseException:
            for tree in trees:
                tree.close()
            raise
        return cls(trees)

    def close(self) -> None:
        """Close all trees."""
        for tree in self.trees:
            tree.close()

    def children(self, directory: Seen) -> dict[str, Seen]:
        """The entries that are seen in a directory."""
        if directory.sources not in self._known:
            self._known[directory.sources] = self._merge(directory)
        return self._known[directory.sources]

    def _merge(self, directory: Seen) -> dict[str, Seen]:
        found: dict[str, Seen] = {}
        complete: set[str] = set()  # names of which lower trees add nothing
        for number, entry in directory.sources:
            for name, child in self.trees[number].children(entry).items():
                if name in complete:
                    continue
                above = found.get(name)
                if child.kind is not EntryKind.DIRECTORY:
                    complete.add(name)
                if above is None and child.kind is not EntryKind.WHITEOUT:
                    found[name] = Seen(child.kind, ((number, child),))
                elif above is not None and child.kind is EntryKind.DIRECTORY:
                    found[name] = Seen(child.kind, (*above.sources, (number, child)))
        return found

    def find(self, path: str) -> Seen | None:
        """The entry at a path ("usr/lib"), without following symlinks."""
        found = self.root
        for name in filter(None, path.split("/")):
            child = self.children(found).get(name) if found.is_directory else None
            if child is None:
                return None
            found = child
        return found

    def status(self, seen: Seen) -> Status:
        """Owner, mode, links and attributes of the uppermost source."""
        number, entry = seen.sources[0]
        return self.trees[number].status(entry)

    def links(self, file: Key) -> int:
        """The number of names of a file in its tree."""
        return self.trees[file.tree].status(SquashEntry(EntryKind.FILE, file.reference)).links

    def target(self, symlink: Seen) -> str:
        """The target of a symlink."""
        number, entry = symlink.sources[0]
        return self.trees[number].target(entry)

    def read(self, seen: Seen) -> Iterator[bytes]:
        """The content of a file, in pieces."""
        number, entry = seen.sources[0]
        with self.trees[number].open(entry) as file:
            while piece := file.read(1 << 20):
                yield piece

    def files(self, seen: Seen, path: str) -> Iterator[tuple[str, Seen]]:
        """All that is no directory, at and below a path."""
        waiting = [(path, seen)]
        while waiting:
            where, entry = waiting.pop()
            if not entry.is_directory:
                yield where, entry
                continue
            waiting += [(f"{where}/{name}" if where else name, child) for name, child in self.children(entry).items()]
