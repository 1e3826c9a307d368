"""The layers of steps in the store: found by the key of their step, and kept under it.

A layer of the store is used in its place. What another process removes or changes there during a build is noticed when
the image is written (`intact`): the build then makes it again.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolkit.builds.layers.layer import Layer
from toolkit.inventory.formats.layers import is_layer_name
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.inventory.formats.squashfs_check import read_back
from toolkit.store.keeping import require_used
from toolkit.store.store import Kind
from toolkit.support.errors import CtkError, ProgramFailed, WrongInput
from toolkit.support.paths import OVERLAY_SEPARATORS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolkit.store.store import Entry, Store


@dataclass(frozen=True, slots=True)
class Stored:
    """What the store has of a step: its layer, None for a step that changes nothing."""

    layer: Layer | None


@dataclass(slots=True)
class StoredLayers:
    """The layers that one build takes from `store` or keeps there.

    With `fresh` no layer of the store is used, and those of this build replace them. `cores` are for reading new layers
    back; None for all. `on_progress` gets the bytes of a layer that are read back, and all of them.
    """

    store: Store
    fresh: bool = False
    cores: int | None = None
    on_progress: Callable[[int, int], None] | None = None
    _used: list[tuple[Path, tuple[int, ...]]] = field(default_factory=list)

    def find(self, key: str) -> Stored | None:
        """What is kept under the key of a step; None if there is nothing, or it is damaged.

        This user's store comes first: after a build with `fresh` it has the newer layer.
        """
        if self.fresh:
            return None
        for store in (replace(self.store, shared=()), self.store):
            entry = store.find(Kind.LAYER, key)
            if entry is None:
                continue
            found = self._taken(entry)
            # What was checked is what was taken: an unchanged file's digest is remembered.
            if found is not None and self._digest(entry) == entry.digest:
                return found
            if entry.path.is_relative_to(self.store.own):
                self.store.discard(Kind.LAYER, key)
        return None

    def keep(self, key: str, layer: Layer | None, scratch: Path, about: Mapping[str, str]) -> Layer | None:
        """Move what a step made into the store; return the layer there, None for a step that changed nothing.

        If another build was faster, the layer is that of the other one. `about` says for people what it is. Raises as
        `Store.publish` does, and ProgramFailed if the layer cannot be read back, or what it was made over is another
        one now.
        """
        require_used(Kind.BASE)  # its content is in the key
        if not self.intact():  # what is made in place of a removed layer may differ
            raise ProgramFailed("a layer in the store was removed or changed", code="store-changed")
        if layer is not None:
            self.check(layer)
        if self.fresh:
            self.store.discard(Kind.LAYER, key)
        if layer is None:
            file = scratch / f"{key}.empty"
            file.touch(exist_ok=False)
        else:
            file, about = layer.path, {**about, "name": layer.name}
        found = self._taken(self.store.publish(Kind.LAYER, key, file, about))
        if found is None:
            raise _damaged("it has no mark")
        return found.layer

    def check(self, layer: Layer) -> None:
        """Read back a layer that is not kept. Raises ProgramFailed."""
        _read_back(layer.path, self.cores, self.on_progress)

    def intact(self) -> bool:
        """Whether all layers of this build are what they were when they were found or kept."""
        return all(_stamp(path) == stamp for path, stamp in self._used)

    def _digest(self, entry: Entry) -> str | None:
        try:
            return self.store.digests.of_file(entry.path)
        except OSError:
            return None

    def _taken(self, entry: Entry) -> Stored | None:
        """What an entry holds; None if it is not a layer that can be mounted."""
        stamp = _stamp(entry.path)
        if entry.size == 0:
            return Stored(None)
        name = entry.about.get("name", "")
        if any(character in str(entry.path) for character in OVERLAY_SEPARATORS) or not _has_mark(entry.path, name):
            return None
        self._used.append((entry.path, stamp))
        return Stored(Layer(entry.path, name, entry.size, entry.digest))


def _read_back(path: Path, cores: int | None, on_progress: Callable[[int, int], None] | None) -> None:
    """Decompress all of a new layer: mksquashfs may write a damaged one without an error (Apptainer issue 3486)."""
    try:
        read_back(path, cores=cores, on_progress=on_progress)
    except WrongInput as error:
        raise _damaged(error.message) from error


def _damaged(reason: str) -> ProgramFailed:
    return ProgramFailed(
        f"a layer cannot be read back after it was packed: {reason}",
        fix="Build again. If this happens again, check the memory and the disk of this host.",
        code="corrupt-image",
    )


def _has_mark(path: Path, name: str) -> bool:
    """Whether a squashfs holds the mark of the layer `name`."""
    if not is_layer_name(name):
        return False
    with contextlib.suppress(CtkError, OSError):
        tree = Squashfs(path)
        try:
            directory = tree.children(tree.root).get(".singularity.d")
            return directory is not None and name in tree.children(directory)
        finally:
            tree.close()
    return False


def _stamp(path: Path) -> tuple[int, ...]:
    """The identity of a file, with its size and times; empty if it is not there."""
    try:
        status = path.lstat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
