"""The image as layers over its base: a container for each layer, the guard, then the SIF."""

from __future__ import annotations

import contextlib
import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.layers.make import Below, LayerRoom, NotLayered, StepFailed, make_layer, run_read_only
from toolkit.builds.layers.metadata import assemble, complete_metadata
from toolkit.builds.layers.pack import packer_version
from toolkit.builds.offline import require_step
from toolkit.builds.progress import failed_output
from toolkit.builds.values import read_value
from toolkit.definitions.layered import LayerName
from toolkit.inventory.formats.layers import layer_names
from toolkit.inventory.formats.sif_edit import copy_base
from toolkit.pins.bases.steady import unchanged
from toolkit.pins.guard.log import failures, seconds_of_imports
from toolkit.pins.guard.over_layers import GuardedLayers, judge_apt, judge_base, judge_layers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from toolkit.builds.layers.layer import Layer
    from toolkit.builds.state import BuildState
    from toolkit.builds.values import Value
    from toolkit.builds.wheelhouse import Wheelhouse
    from toolkit.definitions.layered import LayeredSteps
    from toolkit.pins.guard.over_layers import Judgement


# What a step's writable overlay cannot do, and a flat build can: move a directory of the base, make a name that begins
# with `.wh.`, make a device (tried with fuse-overlayfs 1.10).
_LIMITS = re.compile(
    r": (?:Directory not empty|Invalid argument|Invalid cross-device link)$"
    r"|cannot create .*\.wh\.|\bmknod: .*not permitted"
)
_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class BuildLayers:
    """`image` becomes a copy of the SIF `base` with a layer for each step that changes something.

    `environment` are variables of the runtime's process, `packages` the files for the step of that name. The base is
    copied while the containers run, and the image is written while the packages are imported.
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
        state.begin_log(f"layers over {self.base}")
        lock = state.plan.locked.lock if state.plan.locked else None
        room = self._room(state)
        state.listener.on_step(f"adding layers to {self.base.name}")
        with unchanged(state.plan.request.base_state), _writer(self.base, self.image) as (writer, copied):
            if lock is not None:
                self._require(judge_base(lock, self.base), state)
            made, metadata = self._make(state, room)
            layers = tuple(made.values())
            if lock is not None:
                state.listener.on_step("comparing the protected packages")
                paths = {name.value: layer.path for name, layer in made.items()}
                self._require(judge_layers(lock, self.base, GuardedLayers(**paths)), state)
            written = writer.submit(self._write, copied, layers, metadata)
            if self.steps.imports:
                with _explained(state):
                    run_read_only(self.steps.imports, Below(self.base, layers), room)
                if failures(state.transcript.last_lines):
                    raise state.failure(1)
            state.listener.on_step("writing the image")
            written.result()
        state.layers, state.packer = layer_names(self.image), packer_version()  # with those of a layered base
        state.import_seconds = seconds_of_imports(state.transcript.last_lines)

    def _write(self, copied: Future[None], layers: tuple[Layer, ...], metadata: bytes) -> None:
        copied.result()
        assemble(self.image, layers, self.text, metadata)

    def _room(self, state: BuildState) -> LayerRoom:
        options = state.plan.request.options
        return LayerRoom(
            self.scratch,
            state.context.runtime,
            self.binds,
            {name: read_value(value) for name, value in self.environment.items()},
            state.transcript.take,
            options.compression,
            options.cores,
        )

    def _make(self, state: BuildState, room: LayerRoom) -> tuple[dict[LayerName, Layer], bytes]:
        """The layers by name, and the content of the metadata object of the SIF."""
        lock = state.plan.locked.lock if state.plan.locked else None
        made: dict[LayerName, Layer] = {}
        metadata = b""

        def finish(found: Mapping[str, bytes]) -> Mapping[str, bytes]:
            nonlocal metadata
            files, metadata = complete_metadata(found, self.base, self.text, room.runtime, self.scratch)
            return files

        for step in self.steps.layers:
            last = finish if step is self.steps.layers[-1] else None
            below = Below(self.base, tuple(made.values()))
            self._provide(step.name, state)
            with _explained(state):
                layer = make_layer(step.script, below, room, inputs=step.inputs, finish=last)
            if layer is None:
                continue
            made[step.name] = layer
            if step.name is LayerName.APT and lock is not None:
                self._require(judge_apt(lock, self.base, layer.path), state)
        return made, metadata

    def _provide(self, name: LayerName, state: BuildState) -> None:
        """Bring what a step that has to run takes from the network; offline, refuse what is not here."""
        request, lock = state.plan.request, state.plan.locked.lock if state.plan.locked else None
        if request.recipe is not None:
            packages, apt = name is LayerName.PACKAGES, name is LayerName.APT
            require_step(request.recipe, lock, state.context, packages=packages, apt=apt)
        if name is LayerName.PACKAGES and self.packages is not None:
            self.packages.run(state)

    def _require(self, judgement: Judgement, state: BuildState) -> None:
        for line in judgement.lines:
            state.transcript.take(line)
        if not judgement.passed:
            raise state.failure(1)


@contextlib.contextmanager
def _explained(state: BuildState) -> Iterator[None]:
    try:
        yield
    except StepFailed as error:
        lines = failed_output(state.transcript.last_lines)
        if (limit := next(filter(_LIMITS.search, lines[-_LAST_LINES:]), None)) is not None:
            message = f"a command failed that may work in a flat image: {limit.strip()}"
            raise NotLayered(message, fix="Build it with --flat.") from None
        raise state.failure(error.status) from None


@contextlib.contextmanager
def _writer(base: Path, image: Path) -> Iterator[tuple[ThreadPoolExecutor, Future[None]]]:
    """A thread that first copies `base` to `image`, and this copy. An error in the block stops it."""
    stopped = threading.Event()

    def stop_here(_done: int, _size: int) -> None:
        if stopped.is_set():
            raise InterruptedError

    with ThreadPoolExecutor(1) as writer:
        copied = writer.submit(copy_base, base, image, stop_here)
        try:
            yield writer, copied
        except BaseException:
            stopped.set()
            raise
