"""Imports of earlier builds: a package is imported again only if something that its import looks for has changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.pins.guard.script import IMPORTING_FILES, payload
from toolkit.pins.guard.traced import environment_digest, has_effect, read_trace
from toolkit.support.errors import CtkError
from toolkit.support.files import open_regular, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolkit.builds.layers.layer import Layer
    from toolkit.inventory.formats.tree import Tree
    from toolkit.pins.guard.traced import ImportTrace
    from toolkit.pins.guard.trials import ImportedPackage, ImportStep


_MAX_SIZE = 32 << 20  # bytes


@dataclass(frozen=True, slots=True)
class ImportMemory:
    """What is known of imports over `base` and `layers`, kept in `directory`.

    `common` is the hash of what all imports of a build have in common (`common_key`).
    """

    directory: Path
    common: str
    base: Rootfs
    layers: tuple[tuple[str, Tree], ...]

    def seconds(self, package: ImportedPackage) -> float | None:
        """How long an earlier build took to import `package`, if this one would end in the same way; else None."""
        try:
            with open_regular(self._path(package)) as file:
                text = file.read(_MAX_SIZE + 1)
            content = json.loads(text) if len(text) <= _MAX_SIZE else {}
            trace, seconds = read_trace(json.dumps(content["trace"])), float(content["seconds"])
            same = trace is not None and content["state"] == self._state(trace)
        except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
            return None
        return seconds if same and 0 <= seconds < math.inf else None

    def keep(self, package: ImportedPackage, seconds: float, trace: ImportTrace) -> None:
        """Remember that `package` was imported. It is no error where that cannot be written."""
        if not trace.is_usable:
            return
        content = {"seconds": seconds, "state": self._state(trace), "trace": asdict(trace)}
        with contextlib.suppress(OSError, CtkError):
            self.directory.mkdir(mode=0o700, exist_ok=True)
            write_atomically(self._path(package), json.dumps(content), mode=0o600, durable=False)

    def _path(self, package: ImportedPackage) -> Path:
        return self.directory / f"{_hash(self.common, asdict(package))}.json"

    def _state(self, trace: ImportTrace) -> str:
        """A hash of what the layers hold for this import."""
        read = [name for name, tree in self.layers if has_effect(trace, tree, self.base)]
        variables = [environment_digest(Rootfs(tree, name, "layer")) for name, tree in self.layers]
        return _hash(read, [digest for digest in variables if digest is not None])


@contextlib.contextmanager
def import_memory(directory: Path, common: str, base: Path, layers: Sequence[Layer]) -> Iterator[ImportMemory]:
    """The memory for these layers, whose files stay open in the block."""
    with contextlib.ExitStack() as stack:
        rootfs = stack.enter_context(open_image(base))
        trees = []
        for layer in layers:
            tree = Squashfs(layer.path)
            stack.callback(tree.close)
            trees.append((layer.name, tree))
        yield ImportMemory(directory, common, rootfs, tuple(trees))


def common_key(first: str, interpreter: str | None, wanted: ImportStep, binds: Sequence[str]) -> str:
    """`first` is the key of the base and of what its layers are made with; of `binds` only the targets count."""
    targets = [bind.split(":")[1] if ":" in bind else bind for bind in binds]
    return _hash(first, interpreter, dict(wanted.environment), targets, [payload(name) for name in IMPORTING_FILES])


def _hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
