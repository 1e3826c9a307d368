"""Several trees as one, as an overlay mount shows them: upper hides lower, whiteouts and opaque directories honoured.

Sources: Linux, Documentation/filesystems/overlayfs.rst (character device 0,0 and xattrs); fuse-overlayfs, main.c, and
the OCI image specification, layer.md (`.wh.NAME`, `.wh..wh..opq`). Not every mount honours every mark: Apptainer 1.4.5
without root, on the kernel's overlayfs, honours the character device alone (tried with each of them). Hence `disputed`.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, NamedTuple

from toolkit.inventory.formats.tree import EntryKind, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WHITEOUT_PREFIX = ".wh."
_OPAQUE_FILES = (".wh..wh..opq", ".wh..opq")


class OverlayEntry(NamedTuple):
    """A name, and where it comes from: (number of the tree, entry there), uppermost first; several for a directory."""

    kind: EntryKind
    sources: tuple[tuple[int, Any], ...]
    path: str


class Overlay:
    """`trees` from the uppermost to the lowest, shown as one."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self._trees = tuple(trees)
        self._directories: dict[tuple[tuple[int, Any], ...], dict[str, OverlayEntry]] = {}
        # Paths that are hidden here and that some mounts show, as far as directories were looked into.
        self.disputed: set[str] = set()

    @property
    def root(self) -> OverlayEntry:
        """The topmost directory, made of that of every tree."""
        return OverlayEntry(
            EntryKind.DIRECTORY, tuple((number, tree.root) for number, tree in enumerate(self._trees)), ""
        )

    def children(self, directory: OverlayEntry) -> Mapping[str, OverlayEntry]:
        """The entries that are seen in a directory."""
        if directory.sources not in self._directories:
            self._directories[directory.sources] = self._merge(directory)
        return self._directories[directory.sources]

    def _merge(self, directory: OverlayEntry) -> dict[str, OverlayEntry]:
        sources: dict[str, list[tuple[int, Any]]] = {}
        kinds: dict[str, EntryKind] = {}
        hidden: set[str] = set()  # names that hide those of lower trees
        marked: set[str] = set()  # those of them that only a mark hides which the kernel may ignore
        opaque = False
        for number, entry in directory.sources:
            tree = self._trees[number]
            names = tree.children(entry)
            if opaque:
                self.disputed.update(f"{directory.path}/{name}" for name in names if name not in hidden)
                break
            opaque = any(name in names for name in _OPAQUE_FILES)
            hidden_below: set[str] = set()
            for name, child in names.items():
                if name.startswith(_WHITEOUT_PREFIX):
                    hidden_below.add(name[len(_WHITEOUT_PREFIX) :])
                    marked.add(name[len(_WHITEOUT_PREFIX) :])
                    continue
                if name in hidden:
                    if name in marked:
                        self.disputed.add(f"{directory.path}/{name}")
                    continue
                if child.kind is EntryKind.DIRECTORY:
                    sources.setdefault(name, []).append((number, child))
                    kinds[name] = EntryKind.DIRECTORY
                    if number < len(self._trees) - 1 and tree.is_opaque(child):
                        hidden_below.add(name)
                        marked.add(name)
                    continue
                hidden_below.add(name)
                if child.kind is not EntryKind.WHITEOUT and name not in sources:
                    sources[name] = [(number, child)]
                    kinds[name] = child.kind
            hidden |= hidden_below
        return {
            name: OverlayEntry(kinds[name], tuple(found), f"{directory.path}/{name}") for name, found in sources.items()
        }

    def _first(self, entry: OverlayEntry) -> tuple[Tree, Any]:
        number, own = entry.sources[0]
        return self._trees[number], own

    def target(self, symlink: OverlayEntry) -> str:
        """The target of a symlink."""
        tree, own = self._first(symlink)
        return tree.target(own)

    def size(self, file: OverlayEntry) -> int:
        """Bytes of a file."""
        tree, own = self._first(file)
        return tree.size(own)

    def mode(self, entry: OverlayEntry) -> int:
        """The permission bits of a file or directory, those of the uppermost tree that has it."""
        tree, own = self._first(entry)
        return tree.mode(own)

    def open(self, file: OverlayEntry) -> IO[bytes]:
        """A file to read and seek in."""
        tree, own = self._first(file)
        return tree.open(own)

    def is_opaque(self, directory: OverlayEntry) -> bool:
        """Whether the uppermost tree that has the directory marks it."""
        tree, own = self._first(directory)
        return tree.is_opaque(own)

    def close(self) -> None:
        """Close every tree."""
        for tree in self._trees:
            tree.close()
