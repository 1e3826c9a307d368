"""Imports of earlier builds: a package is imported again only if something that its import looks for has changed.

The recipe's own check is repeated if any layer has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

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

    `common` is the hash of what all imports of a build have in common (`common_key`). The last layer is that of the
    metadata, which has the time of the build in it.
    """

    directory: Path
    common: str
    base: Rootfs
    layers: tuple[tuple[str, Tree], ...]

    def seconds(self, package: ImportedPackage) -> float | None:
        """How long an earlier build took to import `package`, if this one would end in the same way; else None."""
        content = _read(self._path(package))
        trace = read_trace(json.dumps(content.get("trace")))
        return _seconds_in(content, self._state(trace)) if trace is not None else None

    def keep(self, package: ImportedPackage, seconds: float, trace: ImportTrace) -> None:
        """Remember that `package` was imported. It is no error where that cannot be written."""
        if not trace.is_usable:
            return
        self._write(self._path(package), {"seconds": seconds, "state": self._state(trace), "trace": asdict(trace)})

    def seconds_of_check(self, command: Sequence[str]) -> float | None:
        """How long the recipe's own check took over these very layers; None if it did not pass there.

        What it reads is not recorded: any other layer may change its result.
        """
        return _seconds_in(_read(self._path_of_check(command)), self._state_of_all())

    def keep_check(self, command: Sequence[str], seconds: float) -> None:
        """Remember that the recipe's own check passed. It is no error where that cannot be written."""
        self._write(self._path_of_check(command), {"seconds": seconds, "state": self._state_of_all()})

    def _write(self, path: Path, content: dict[str, object]) -> None:
        with contextlib.suppress(OSError, CtkError):
            self.directory.mkdir(mode=0o700, exist_ok=True)
            write_atomically(path, json.dumps(content), mode=0o600, durable=False)

    def _path_of_check(self, command: Sequence[str]) -> Path:
        return self.directory / f"{_hash(self.common, payload('check.py'), list(command))}.json"

    def _path(self, package: ImportedPackage) -> Path:
        return self.directory / f"{_hash(self.common, asdict(package))}.json"

    def _state(self, trace: ImportTrace) -> str:
        """A hash of what the layers hold for this import."""
        return _hash([name for name, tree in self.layers if has_effect(trace, tree, self.base)], self._variables())

    def _state_of_all(self) -> str:
        return _hash([name for name, _ in self.layers[:-1]], self._variables())

    def _variables(self) -> list[str]:
        """What the layers hold for the variables of a container."""
        digests = [environment_digest(Rootfs(tree, name, "layer")) for name, tree in self.layers]
        return [digest for digest in digests if digest is not None]


def _read(path: Path) -> dict[str, Any]:
    """What is remembered in a file; nothing of a damaged one."""
    try:
        with open_regular(path) as file:
            text = file.read(_MAX_SIZE + 1)
        content = json.loads(text) if len(text) <= _MAX_SIZE else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _seconds_in(content: dict[str, Any], state: str) -> float | None:
    """How long it took, if the state was the same."""
    try:
        seconds = float(content["seconds"])
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return None
    return seconds if content.get("state") == state and 0 <= seconds < math.inf else None


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
