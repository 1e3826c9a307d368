"""The image as layers over its base: a container for each layer, the guard, then the SIF."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.builds.layers.chain import key_of_base
from toolkit.builds.layers.failing import explained, require_passed
from toolkit.builds.layers.importing import Guard, import_packages
from toolkit.builds.layers.make import Below, LayerRoom, make_layer
from toolkit.builds.layers.metadata import (
    assemble,
    changed_files,
    inspect_object,
    require_room,
)
from toolkit.builds.layers.pack import packer_version
from toolkit.builds.layers.steps import StepLayers
from toolkit.builds.layers.stored import StoredLayers
from toolkit.builds.values import read_value
from toolkit.definitions.layered import METADATA
from toolkit.inventory.formats.layers import layer_names
from toolkit.inventory.formats.sif import read_sif
from toolkit.inventory.formats.sif_digests import digest_of_part, partition_digests
from toolkit.inventory.formats.sif_edit import copy_base
from toolkit.pins.bases.steady import unchanged
from toolkit.pins.guard.log import seconds_of_imports
from toolkit.pins.guard.over_layers import judge_base
from toolkit.store.digests import Digests
from toolkit.support.content import others_can_change_in
from toolkit.support.errors import CtkError, ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolkit.builds.context import BuildContext
    from toolkit.builds.layers.layer import Layer
    from toolkit.builds.state import BuildState
    from toolkit.builds.values import Value
    from toolkit.builds.wheelhouse import Wheelhouse
    from toolkit.definitions.layered import LayeredSteps


_ATTEMPTS = 3  # the last one uses no layer of the store


@dataclass(frozen=True, slots=True)
class BuildLayers:
    """`image` becomes a copy of the SIF `base` with a layer for each step that changes something.

    `environment` are variables of the runtime's process, `packages` the files for the step of that name. A step whose
    layer is in the store does not run. The base is copied while the containers run; the layers are judged and written
    while the packages are imported.
    """

    image: Path
    base: Path
    text: str
    steps: LayeredSteps
    scratch: Path
    binds: tuple[str, ...]
    environment: Mapping[str, Value]
    packages: Wheelhouse | None = None

    def run(self, state: BuildState) -> None:
        require_room(self.base, len(self.steps.layers) + 1)
        state.begin_log(f"layers over {self.base}")
        store = replace(state.context.store, note=state.transcript.begin)
        for attempt in range(_ATTEMPTS):
            stored = StoredLayers(
                store,
                fresh=state.plan.request.force or attempt == _ATTEMPTS - 1,
                cores=state.plan.request.options.cores,
                on_progress=state.listener.on_progress,
            )
            try:
                self._build(state, stored)
            except (CtkError, OSError):
                if stored.intact():
                    raise
            else:
                if stored.intact():
                    return
            state.listener.note_failed("a layer in the store was removed or changed: making the image again")
            self.image.unlink(missing_ok=True)
        raise ProgramFailed(
            f"the layers in {store.own} are removed or changed while they are used",
            fix="Build again when no other process writes to the store.",
            code="store-changed",
        )

    def _build(self, state: BuildState, stored: StoredLayers) -> None:
        lock = state.plan.locked.lock if state.plan.locked else None
        room = self._room(state)
        with (
            unchanged(state.plan.request.base_state),
            _workers(self.base, self.image, state.context) as (workers, copied),
        ):
            if lock is not None:
                state.listener.on_step("comparing the base with the lock")
                require_passed(judge_base(lock, self.base), state)
            made, key = StepLayers(self.base, state, room, stored, self.packages), self._first_key(state)
            before: str | None = key
            for step in self.steps.layers:
                before = made.add(step, before)
            layers = (*made.layers, self._metadata(state, room, stored, made.layers))
            guard = None
            if lock is not None:
                state.listener.on_step("comparing the protected packages")
                guard = Guard(lock, self.base, made.guarded, state, workers)
            written = workers.submit(self._write, copied, layers, room)
            if guard is not None and self.steps.imports is not None:
                import_packages(self.steps.imports, guard, Below(self.base, layers), room, key)
            if guard is not None:
                guard.require()
            state.listener.on_step("writing the image")
            written.result()
        state.layers, state.packer = layer_names(self.image), packer_version()  # with those of a layered base
        state.used = tuple(layer.path for layer in layers)
        state.digests = {**copied.result(), **_digests(self.image, layers)}
        state.import_seconds = seconds_of_imports(state.transcript.last_lines)

    def _write(self, copied: Future[dict[str, str]], layers: tuple[Layer, ...], room: LayerRoom) -> None:
        metadata = inspect_object(self.base, layers, room.runtime, self.scratch)
        copied.result()
        assemble(self.image, layers, self.text, metadata)

    def _room(self, state: BuildState) -> LayerRoom:
        options = state.plan.request.options
        return LayerRoom(
            self.scratch,
            state.context.runtime,
            self.binds,
            {name: read_value(value) for name, value in self.environment.items()},
            state.transcript.take_part,
            options.compression,
            options.cores,
            memory=options.memory,
            network=not state.context.offline,
            on_part=state.listener.on_part,
            on_progress=state.listener.on_progress,
        )

    def _metadata(self, state: BuildState, room: LayerRoom, stored: StoredLayers, below: tuple[Layer, ...]) -> Layer:
        """The layer with what the definition itself becomes. It names paths of this host, so it is not kept."""

        def finish(found: Mapping[str, bytes]) -> Mapping[str, bytes]:
            return changed_files(found, self.base, self.text, room.runtime)

        started = time.monotonic()
        state.listener.on_step(METADATA)
        with explained(state):
            layer = make_layer("", Below(self.base, below), room, finish=finish)
        assert layer is not None  # noqa: S101 - the definition is written in any case
        stored.check(layer)
        state.listener.on_step_done(METADATA, time.monotonic() - started, cached=False)
        return layer

    def _first_key(self, state: BuildState) -> str:
        """The key before the first step."""
        recipe = state.plan.request.recipe
        assert recipe is not None  # noqa: S101
        return key_of_base(recipe, self.base, state.plan, state.context)


@contextlib.contextmanager
def _workers(
    base: Path, image: Path, context: BuildContext
) -> Iterator[tuple[ThreadPoolExecutor, Future[dict[str, str]]]]:
    """Threads, of which one first copies `base` to `image`, and the digests of the partitions that are copied.

    An error in the block stops it. Of a base in a shared store, the copy is compared with the digest of the entry: none
    is returned then.
    """
    stopped = threading.Event()

    def stop_here(*_bytes: int) -> None:
        if stopped.is_set():
            raise InterruptedError

    def copy() -> dict[str, str]:
        copy_base(base, image, stop_here)
        if not others_can_change_in(base):
            return partition_digests(base, context.locks.cache, stop_here)
        if Digests(None).of_file(image) != context.store.digests.of_file(base):
            raise _changed_in_store(base)
        return {}

    with ThreadPoolExecutor(2) as workers:
        copied = workers.submit(copy)
        try:
            yield workers, copied
        except BaseException:
            stopped.set()
            raise


def _digests(image: Path, layers: tuple[Layer, ...]) -> dict[str, str]:
    """The known digests of the layers in `image`, by name; those that others can change in a shared store are compared.

    Raises ProgramFailed (`store-changed`).
    """
    known = {layer.name: layer.digest for layer in layers if layer.digest is not None}
    for layer in layers:
        if layer.digest is not None and others_can_change_in(layer.path):
            with image.open("rb") as file:
                found = next(found for found in reversed(read_sif(image).descriptors) if found.name == layer.name)
                if digest_of_part(file.fileno(), found) != layer.digest:
                    raise _changed_in_store(layer.path)
    return known


def _changed_in_store(path: Path) -> ProgramFailed:
    return ProgramFailed(
        f"{path} does not have the content that ctk read before, and its times are the same",
        fix="Ask the owner of the store to run `ctk cache verify --remove`, or build without that store.",
        code="store-changed",
    )
