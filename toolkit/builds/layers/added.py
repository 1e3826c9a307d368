"""The packages of a lock by layers: one that an earlier build kept, and one for what the lock adds to it.

For each build it is remembered which names its layers hold. Whether a kept layer is the right one, its key alone
decides, which is computed from the lock of the new build: a lost or wrong file of names costs time, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.builds.layers.below import Lower
from toolkit.definitions.layered import added_step, packages_step
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.inventory.formats.tree import EntryKind
from toolkit.support.errors import CtkError
from toolkit.support.files import open_regular, write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.builds.layers.below import Seen
    from toolkit.definitions.layered import LayerStep
    from toolkit.inventory.formats.squashfs import SquashEntry
    from toolkit.pins.lock.model import Lock, LockedPackage

MAX_ADDED = 3  # layers; each delays the start of a container by some 30 ms (benchmarks/RESULTS.md)
_MAX_KNOWN = 8  # builds over the same layers
_MAX_SIZE = 1 << 20  # bytes
Groups = tuple[tuple[str, ...], ...]  # the names of the packages in each layer, the lowest first


@dataclass(frozen=True, slots=True)
class Part:
    """Some packages of a lock, and the step that makes their layer; `adds`: over another layer of packages."""

    lock: Lock
    adds: bool

    @property
    def step(self) -> LayerStep:
        return added_step(self.lock) if self.adds else packages_step(self.lock)


def names_of(parts: Sequence[Part]) -> Groups:
    """The names of the packages in each part."""
    return tuple(tuple(package.name for package in part.lock.packages) for part in parts)


def divided(lock: Lock, groups: Groups) -> tuple[Part, ...] | None:
    """`lock` in the parts `groups`, and a last one with what they lack; None if it needs one layer for all.

    That is where a package of `groups` is not in the lock any more, another than a plain wheel is added, or there would
    be more than MAX_ADDED layers over the first.
    """
    grouped = [name for group in groups for name in group]
    left = tuple(package.name for package in lock.packages if package.name not in grouped)
    names = [*groups, *([left] if left else [])]
    if not grouped or len(names) > 1 + MAX_ADDED or not lock.versions.keys() >= set(grouped):
        return None
    first, *added = (_only(lock, frozenset(group)) for group in names)
    if not all(_is_plain(package) for part in added for package in part.packages):
        return None
    return (Part(first, adds=False), *(Part(part, adds=True) for part in added))


def _only(lock: Lock, names: frozenset[str]) -> Lock:
    packages = tuple(package for package in lock.packages if package.name in names)
    return replace(lock, packages=packages, builds=tuple(build for build in lock.builds if names >= {*build.sources}))


def _is_plain(package: LockedPackage) -> bool:
    """Whether to install it copies files of a known hash, and removes none of the base."""
    return package.is_wheel and package.sha256 is not None and package.url is None and package.replaces is None


@dataclass(frozen=True, slots=True)
class KnownGroups:
    """What earlier builds installed over the layers with the key `below`; kept in `directory`."""

    directory: Path
    below: str

    def read(self) -> tuple[Groups, ...]:
        """The groups of some builds, those of the last one first."""
        try:
            with open_regular(self._path) as file:
                text = file.read(_MAX_SIZE + 1)
            content = json.loads(text) if len(text) <= _MAX_SIZE else []
        except (OSError, ValueError, RecursionError):
            return ()
        if not isinstance(content, list):
            return ()
        return tuple(tuple(map(tuple, groups)) for groups in content[:_MAX_KNOWN] if _is_groups(groups))

    def remember(self, groups: Groups, *, alone: bool) -> None:
        """Note those of this build; `alone`: forget all others. It is no error where that cannot be written."""
        others = () if alone else (known for known in self.read() if known != groups)
        with contextlib.suppress(OSError, CtkError):
            self.directory.mkdir(mode=0o700, exist_ok=True)
            text = json.dumps([groups, *others][:_MAX_KNOWN])
            write_atomically(self._path, text, mode=0o600, durable=False)

    @property
    def _path(self) -> Path:
        return self.directory / f"{self.below}.json"


def _is_groups(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(group, list) and group and all(isinstance(name, str) for name in group) for group in value
    )


def only_adds(layer: Path, image: Path, below: Sequence[Path]) -> bool:
    """Whether `layer` leaves all that it lies over as it is: the SIF `image` and the layers `below`, the lowest first.

    A file that two packages bring is that of the one that is installed last, and then which layer has it matters.
    """
    with contextlib.closing(Lower.open(image, below)) as lower, contextlib.closing(Squashfs(layer)) as tree:
        return _only_adds(tree, tree.root, lower, lower.root)


def _only_adds(tree: Squashfs, directory: SquashEntry, lower: Lower, seen: Seen) -> bool:
    new, old = tree.status(directory), lower.status(seen)
    if (new.mode, new.uid, new.gid) != (old.mode, old.uid, old.gid) or tree.is_opaque(directory):
        return False
    there = lower.children(seen)
    return all(
        entry.kind is not EntryKind.WHITEOUT
        if name not in there
        else there[name].is_directory
        and entry.kind is EntryKind.DIRECTORY
        and _only_adds(tree, entry, lower, there[name])
        for name, entry in tree.children(directory).items()
    )
