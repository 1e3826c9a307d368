"""The layers of a build's steps, one over the other: those of the store, and where it has none, new ones."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from toolkit.builds.layers.added import Part, names_of, only_adds
from toolkit.builds.layers.chain import key_of_step, known_groups, over_kept
from toolkit.builds.layers.failing import explained, require_passed
from toolkit.builds.layers.make import Below, make_layer
from toolkit.builds.layers.metadata import labels_file, require_room
from toolkit.builds.offline import require_step
from toolkit.definitions.layered import LayerName
from toolkit.pins.guard.over_layers import GuardedLayers, judge_apt
from toolkit.support.content import state_of_copied
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.layers.layer import Layer
    from toolkit.builds.layers.make import LayerRoom
    from toolkit.builds.layers.stored import Stored, StoredLayers
    from toolkit.builds.state import BuildState
    from toolkit.builds.wheelhouse import Wheelhouse
    from toolkit.definitions.layered import LayerStep
    from toolkit.pins.lock.model import Lock


_LATER_LAYERS = 2  # files and the metadata


class _Made(NamedTuple):
    step: LayerName
    layer: Layer
    found: bool  # in the store


class _ReplacesFilesError(Exception):
    """A layer of added packages changes what the layers below hold."""


@dataclass(slots=True)
class StepLayers:
    """The layers over `base` so far; `packages` are the files for the step of that name.

    Of each step there is at most one layer, but for added packages (`toolkit.builds.layers.added`).
    """

    base: Path
    state: BuildState
    room: LayerRoom
    stored: StoredLayers
    packages: Wheelhouse | None
    _made: list[_Made] = field(default_factory=list)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All of them, the lowest first."""
        return tuple(made.layer for made in self._made)

    @property
    def guarded(self) -> GuardedLayers:
        """Their files as the guard takes them."""

        def of(step: LayerName) -> tuple[Path, ...]:
            return tuple(made.layer.path for made in self._made if made.step is step)

        return GuardedLayers(of(LayerName.APT), of(LayerName.PACKAGES), of(LayerName.TAIL))

    @property
    def _lock(self) -> Lock | None:
        return self.state.plan.locked.lock if self.state.plan.locked else None

    def add(self, step: LayerStep, before: str | None) -> str | None:
        """Add what a step changes over all with the key `before`; return the new key, None if that is not known."""
        if step.name is LayerName.PACKAGES and self._lock is not None and before is not None:
            return self._add_packages(step, Part(self._lock, adds=False), before)
        return self._add(step, before)

    def _add_packages(self, step: LayerStep, whole: Part, before: str) -> str | None:
        """Add one layer of all packages, or those of the store and one with what the lock adds to them."""
        known, there = known_groups(before, self.state.context), list(self._made)
        key: str | None = before
        if parts := self._parts(step, before):
            try:
                for part in parts:
                    key = self._add(part.step, key, part)
            except _ReplacesFilesError:
                self.state.transcript.begin("# a package that was added replaces files: all are installed together")
                self._made = there
            else:
                known.remember(names_of(parts), alone=False)
                return key
        key = self._add(step, before, whole)
        known.remember(names_of([whole]), alone=self.stored.fresh)
        return key

    def _parts(self, step: LayerStep, before: str) -> tuple[Part, ...]:
        """The packages by layers where all but the last one are kept; nothing if one layer of all is better."""
        if self.stored.fresh or self._find(step, before)[1] is not None:
            return ()
        way = over_kept(before, self.state.plan, self.state.context)
        if way is None:
            return ()
        with contextlib.suppress(WrongInput):  # a SIF has a fixed number of places for layers
            require_room(self.base, len(self._made) + len(way[0]) + _LATER_LAYERS)
            return way[0]
        return ()

    def _add(self, step: LayerStep, before: str | None, part: Part | None = None) -> str | None:
        """As `add`; `part` has the packages of the step. Raises _ReplacesFilesError if they only may add files."""
        started = time.monotonic()
        sources = [copied.source for copied in step.inputs]
        inputs = state_of_copied(sources)
        key, found = self._find(step, before)
        if found is not None:
            layer = found.layer
        else:
            self._provide(step.name, part)
            started = time.monotonic()
            layer = self._run(step)
            if part is not None and part.adds and layer is not None:
                below = [under.path for under in self.layers]
                if not only_adds(layer.path, self.base, below):
                    raise _ReplacesFilesError
            if state_of_copied(sources) != inputs:
                key = None  # an input changed meanwhile: whether the layer has the old one is not known
            self.state.listener.on_part("reading the layer back")
            if key is not None:
                about = {"step": step.title, "recipe": self.state.plan.record.recipe_name or ""}
                layer = self.stored.keep(key, layer, self.room.directory, about)
            elif layer is not None:
                self.stored.check(layer)
        if layer is not None:
            self._made.append(_Made(step.name, layer, found is not None))
        self.state.listener.on_step_done(step.title, time.monotonic() - started, cached=found is not None)
        return key

    def _run(self, step: LayerStep) -> Layer | None:
        self.state.listener.on_step(step.title)
        with explained(self.state):
            below = Below(self.base, self.layers)
            layer = make_layer(step.script, below, self.room, inputs=step.inputs, finish=labels_file)
        if step.name is LayerName.APT and layer is not None:
            self._judge_apt(layer)
        return layer

    def _judge_apt(self, layer: Layer) -> None:
        if self._lock is not None:
            require_passed(judge_apt(self._lock, self.base, layer.path), self.state)

    def _find(self, step: LayerStep, before: str | None) -> tuple[str | None, Stored | None]:
        """The key of a step, None if that before it is not known, and what the store has of the step.

        A `post` without a network uses what one with a network made, but not the other way round.
        """
        if before is None:
            return None, None
        plan, context = self.state.plan, self.state.context
        key = key_of_step(step, before, plan, context)
        found = self.stored.find(key)
        recipe = plan.request.recipe
        if found is None and context.offline and step.name is LayerName.TAIL and recipe is not None and recipe.post:
            key = key_of_step(step, before, plan, context, network=False)
            found = self.stored.find(key)
        return key, found

    def _provide(self, name: LayerName, part: Part | None) -> None:
        """Bring what a step that has to run takes from the network; offline, refuse what is not here."""
        lock = part.lock if part is not None else self._lock
        recipe = self.state.plan.request.recipe
        if name is LayerName.PACKAGES:
            for made in self._made:
                if made.step is LayerName.APT and made.found:
                    self._judge_apt(made.layer)  # the guard looks at all layers at the end
        if recipe is not None:
            packages, apt = name is LayerName.PACKAGES, name is LayerName.APT
            require_step(recipe, lock, self.state.context, packages=packages, apt=apt)
        if name is LayerName.PACKAGES and self.packages is not None and lock is not None:
            replace(self.packages, lock=lock).run(self.state)
