"""The file system of an image by path: symlinks are resolved inside it, absolute ones too, and loops end."""

from __future__ import annotations

import posixpath
from typing import IO, TYPE_CHECKING, Any

from toolkit.inventory.formats.overlay import Overlay
from toolkit.inventory.formats.tree import EntryKind, Tree, corrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from toolkit.inventory.formats.sif import Sif

LAYERED = "layered SIF"
_MAX_SYMLINKS = 40  # as the kernel's MAXSYMLINKS
_LONGEST_PATH = 4096
_READ_LIMIT = 16 << 20


class Rootfs:
    """An image's files. Paths are absolute inside the image ("/usr/lib"), whatever leads to them.

    `label` is the image's path, `form` what it is ("flat SIF", "layered SIF", "squashfs", "sandbox"), and `sif` the
    header if it has one. `disputed` grows with what is looked at: paths of a lower layer that an upper one hides by
    a mark which the kernel's overlayfs may ignore.

    Every method raises WrongInput (code `corrupt-image`) if the image is damaged.
    """

    def __init__(
        self, tree: Tree, label: str, form: str, sif: Sif | None = None, disputed: set[str] | None = None
    ) -> None:
        self.label = label
        self.form = form
        self.sif = sif
        self.disputed = set() if disputed is None else disputed
        self._tree = tree
        self._found: dict[str, tuple[str, Any] | None] = {"/": ("/", tree.root)}

    def __enter__(self) -> Rootfs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tree.close()

    def over(self, layers: Sequence[Tree]) -> Rootfs:
        """These files with `layers` over them, lowest first. To close it closes the layers, too."""
        merged = Overlay([*layers[::-1], self._tree])
        return Rootfs(merged, self.label, self.form, self.sif, merged.disputed)

    def walk(self, enter: Callable[[str], bool]) -> Iterator[tuple[str, Mapping[str, EntryKind]]]:
        """Each directory with what is in it; symlinks are not followed. Only where `enter` says so by its path."""
        ahead: list[tuple[str, Any]] = [("/", self._tree.root)]
        while ahead:
            path, directory = ahead.pop()
            entries = self._tree.children(directory)
            yield path, {name: entry.kind for name, entry in entries.items()}
            inner = ((posixpath.join(path, name), entry) for name, entry in entries.items())
            ahead += [found for found in inner if found[1].kind is EntryKind.DIRECTORY and enter(found[0])]

    def resolve(self, path: str) -> str | None:
        """The path without any symlink in it, or None if it does not exist."""
        found = self._find(path)
        return found[0] if found else None

    def kind(self, path: str) -> EntryKind | None:
        """The resolved entry; None if the path does not exist."""
        found = self._find(path)
        return found[1].kind if found else None

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        return self._find(path) is not None

    def is_file(self, path: str) -> bool:
        """Whether the path is a regular file."""
        return self.kind(path) is EntryKind.FILE

    def is_directory(self, path: str) -> bool:
        """Whether the path is a directory."""
        return self.kind(path) is EntryKind.DIRECTORY

    def mode(self, path: str) -> int | None:
        """The permission bits of a file or directory; None if the path leads to neither."""
        found = self._find(path)
        if found is None or found[1].kind not in (EntryKind.DIRECTORY, EntryKind.FILE):
            return None
        return self._tree.mode(found[1])

    def closed_directory(self, path: str) -> str | None:
        """The first directory on the way to `path`, symlinks followed, that only its owner and group may enter.

        Nothing in that directory is looked at: in a sandbox, this user may not be allowed to.
        """
        way = "/"
        for name in filter(None, _normal(path).split("/")):
            way = posixpath.join(way, name)
            found = self._find(way)
            if found is None:
                return None
            real, entry = found
            if real != way:
                closed = self.closed_directory(real)
                if closed is not None:
                    return closed
                way = real
            elif entry.kind is EntryKind.DIRECTORY and not self._tree.mode(entry) & 0o001:
                return way
        return None

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a directory, sorted; none if the path leads to no directory."""
        found = self._find(path)
        if found is None or found[1].kind is not EntryKind.DIRECTORY:
            return ()
        return tuple(sorted(self._tree.children(found[1])))

    def subdirectories(self, path: str) -> tuple[str, ...]:
        """The names of the directories in a directory, sorted; symlinks to directories are not among them."""
        found = self._find(path)
        if found is None or found[1].kind is not EntryKind.DIRECTORY:
            return ()
        return tuple(
            sorted(name for name, entry in self._tree.children(found[1]).items() if entry.kind is EntryKind.DIRECTORY)
        )

    def readlink(self, path: str) -> str | None:
        """The target of the symlink at `path`; None if there is no symlink."""
        directory, name = posixpath.split(_normal(path))
        parent = self._find(directory)
        if parent is None or parent[1].kind is not EntryKind.DIRECTORY:
            return None
        entry = self._tree.children(parent[1]).get(name)
        return self._tree.target(entry) if entry is not None and entry.kind is EntryKind.SYMLINK else None

    def size(self, path: str) -> int | None:
        """Bytes of a file; None if there is none."""
        found = self._file(path)
        return None if found is None else self._tree.size(found)

    def open(self, path: str) -> IO[bytes] | None:
        """A file to read and seek in, of which only what is read is fetched; None if there is none."""
        found = self._file(path)
        return None if found is None else self._tree.open(found)

    def read(self, path: str, limit: int = _READ_LIMIT) -> bytes | None:
        """The content of a file, None if there is none. Raises WrongInput if it has more than `limit` bytes."""
        found = self._file(path)
        if found is None:
            return None
        size = self._tree.size(found)
        if size > limit:
            raise corrupt(self.label, f"{path} in it has {size} bytes; at most {limit} are expected")
        with self._tree.open(found) as file:
            return file.read(size)

    def read_text(self, path: str, limit: int = _READ_LIMIT) -> str | None:
        """The content of a file as text; what is not UTF-8 in it is replaced."""
        content = self.read(path, limit)
        return None if content is None else content.decode(errors="replace")

    def read_start(self, path: str, limit: int) -> str | None:
        """The first `limit` bytes of a file as text, None if there is none; what is not UTF-8 in it is replaced."""
        found = self._file(path)
        if found is None:
            return None
        with self._tree.open(found) as file:
            return file.read(min(limit, self._tree.size(found))).decode(errors="replace")

    def _file(self, path: str) -> Any | None:
        found = self._find(path)
        return found[1] if found is not None and found[1].kind is EntryKind.FILE else None

    def _find(self, path: str) -> tuple[str, Any] | None:
        normal = _normal(path)
        if normal not in self._found:
            self._found[normal] = self._walk(normal)
        return self._found[normal]

    def _walk(self, path: str) -> tuple[str, Any] | None:
        """Follow `path` from the root, name by name, as the kernel does after a chroot."""
        trail: list[tuple[str, Any]] = [("/", self._tree.root)]
        ahead = path.split("/")[::-1]
        symlinks = 0
        while ahead:
            name = ahead.pop()
            if name in ("", "."):
                continue
            if name == "..":
                trail = trail[:-1] or trail
                continue
            where, directory = trail[-1]
            if directory.kind is not EntryKind.DIRECTORY:
                return None
            entry = self._tree.children(directory).get(name)
            if entry is None or entry.kind is EntryKind.WHITEOUT:
                return None
            if entry.kind is not EntryKind.SYMLINK:
                trail.append((posixpath.join(where, name), entry))
                continue
            symlinks += 1
            target = self._tree.target(entry)
            if symlinks > _MAX_SYMLINKS or len(target) > _LONGEST_PATH:
                return None
            if target.startswith("/"):
                trail = trail[:1]
            ahead.extend(target.split("/")[::-1])
        return trail[-1]


def _normal(path: str) -> str:
    """Without doubled slashes; `..` stays, since what it means depends on symlinks."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
