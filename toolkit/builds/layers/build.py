"""The image as layers over its base: a container for each layer, the guard, then the SIF."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.layers.make import Below, LayerRoom, StepFailed, make_layer
from toolkit.builds.layers.metadata import assemble, write_metadata
from toolkit.builds.layers.pack import packer_version
from toolkit.builds.values import read_value
from toolkit.definitions.layered import LayerName
from toolkit.inventory.formats.sif_edit import copy_base
from toolkit.inventory.layers import layer_names
from toolkit.pins.bases.steady import unchanged
from toolkit.pins.guard.log import failures, seconds_of_imports
from toolkit.pins.guard.over_layers import GuardedLayers, judge_base, judge_layers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolkit.builds.layers.layer import Layer
    from toolkit.builds.state import BuildState
    from toolkit.builds.values import Value
    from toolkit.definitions.layered import LayerStep
    from toolkit.pins.guard.over_layers import Judgement

_WORDS = {
    LayerName.APT: "installing Debian packages",
    LayerName.PACKAGES: "installing the packages",
    LayerName.TAIL: "finishing the content",
}


@dataclass(frozen=True, slots=True)
class BuildLayers:
    """`image` becomes a copy of the SIF `base` with a layer for each step that changes something.

    `environment` are variables of the runtime's process. The base is copied while the containers run.
    """

    image: Path
    base: Path
    text: str
    steps: tuple[LayerStep, ...]
    scratch: Path
    binds: tuple[str, ...]
    environment: Mapping[str, Value]

    def run(self, state: BuildState) -> None:
        state.begin_log(f"layers over {self.base}")
        lock = state.plan.locked.lock if state.plan.locked else None
        with unchanged(state.plan.request.base_state), _copied(self.base, self.image) as wait:
            if lock is not None:
                self._require(judge_base(lock, self.base), state)
            layers, metadata = self._make(state)
            if lock is not None:
                state.listener.on_step("comparing the protected packages")
                paths = {name.value: layer.path for name, layer in layers.items()}
                self._require(judge_layers(lock, self.base, GuardedLayers(**paths)), state)
                if failures(state.transcript.last_lines):
                    raise state.failure(1)
            state.listener.on_step("writing the image")
            wait()
            assemble(self.image, tuple(layers.values()), self.text, metadata)
        state.layers, state.packer = layer_names(self.image), packer_version()  # with those of a layered base
        state.import_seconds = seconds_of_imports(state.transcript.last_lines)

    def _make(self, state: BuildState) -> tuple[dict[LayerName, Layer], bytes]:
        """The layers by name, and the content of the metadata object of the SIF."""
        runtime, options = state.context.runtime, state.plan.request.options
        environment = {name: read_value(value) for name, value in self.environment.items()}
        room = LayerRoom(
            self.scratch,
            runtime,
            self.binds,
            environment,
            state.transcript.take,
            options.compression,
            options.cores,
        )
        made: dict[LayerName, Layer] = {}
        metadata = b""

        def finish(upper: Path) -> None:
            nonlocal metadata
            metadata = write_metadata(upper, self.base, tuple(made.values()), self.text, runtime, self.scratch)

        for step in self.steps:
            state.listener.on_step(_WORDS[step.name])
            last = finish if step is self.steps[-1] else None
            below = Below(self.base, tuple(made.values()))
            try:
                layer = make_layer(step.script, below, room, inputs=step.inputs, finish=last)
            except StepFailed as error:
                raise state.failure(error.status) from None
            if layer is not None:
                made[step.name] = layer
        return made, metadata

    def _require(self, judgement: Judgement, state: BuildState) -> None:
        for line in judgement.lines:
            state.transcript.take(line)
        if not judgement.passed:
            raise state.failure(1)


@contextlib.contextmanager
def _copied(base: Path, image: Path) -> Iterator[Callable[[], None]]:
    """Copy `base` to `image` while the block runs; yields what waits for the end. An error in the block stops it."""
    stopped = threading.Event()

    def stop_here(_done: int, _size: int) -> None:
        if stopped.is_set():
            raise InterruptedError

    with ThreadPoolExecutor(1) as pool:
        copying = pool.submit(copy_base, base, image, stop_here)
        try:
            yield copying.result
        except BaseException:
            stopped.set()
            raise
