"""The import step of a layered build, and the guard, which judges the layers at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolkit.builds.layers.failing import explained, require_passed
from toolkit.builds.layers.imported import common_key, import_memory
from toolkit.builds.layers.make import run_read_only
from toolkit.definitions.layered import imports_over_layers
from toolkit.pins.guard.log import (
    checked_before,
    checked_in,
    failed_check,
    failures,
    imported_before,
    searched_in,
    traced_in,
)
from toolkit.pins.guard.over_layers import judge_layers
from toolkit.support.errors import CtkError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

    from toolkit.builds.layers.imported import ImportMemory
    from toolkit.builds.layers.make import Below, LayerRoom
    from toolkit.builds.state import BuildState
    from toolkit.pins.guard.over_layers import GuardedLayers, Judgement
    from toolkit.pins.guard.trials import ImportStep
    from toolkit.pins.lock.model import Lock


@dataclass(slots=True)
class Guard:
    """The judgement of the finished `layers` over `base`, in one of `workers` until somebody has to know it."""

    lock: Lock
    base: Path
    layers: GuardedLayers
    state: BuildState
    workers: ThreadPoolExecutor
    _future: Future[Judgement] = field(init=False)
    _passed: Judgement | None = None

    def __post_init__(self) -> None:
        self._future = self.workers.submit(judge_layers, self.lock, self.base, self.layers)

    def require(self) -> Judgement:
        """Wait for the judgement, and write it into the log once. Raises the error of the build if it fails."""
        if self._passed is None:
            judgement = self._future.result()
            require_passed(judgement, self.state)
            self._passed = judgement
        return self._passed

    def require_with(self, sites: tuple[str, ...]) -> None:
        """Judge again if Python searches site directories that the first judgement did not know."""
        if not self.require().sites.issuperset(sites):
            judgement = judge_layers(self.lock, self.base, self.layers, sites)
            if not judgement.passed:
                require_passed(judgement, self.state)


def import_packages(wanted: ImportStep, guard: Guard, below: Below, room: LayerRoom, first: str) -> None:
    """Import the packages of `wanted` in a container of all layers, but those whose import cannot end differently, and
    run its check, unless it passed over the same layers.

    `first` is the key of the base and of what layers are made with. A difference that the guard finds is the reason of
    what fails later. Raises the error of the build.
    """
    common = common_key(first, guard.lock.base.executable, wanted, room.binds)
    directory = guard.state.context.locks.cache / "imports"
    with import_memory(directory, common, below.image, below.layers) as memory:
        left = _not_known(wanted, guard, memory)
        if left.packages or left.check:
            _import(left, guard, below, room, memory)


def _not_known(wanted: ImportStep, guard: Guard, memory: ImportMemory) -> ImportStep:
    """What of `wanted` has to run; the log says what has not."""
    if guard.state.plan.request.force:
        return wanted
    known = {package: memory.seconds(package) for package in wanted.packages if package.name not in wanted.skip}
    guard.require()
    for package, seconds in known.items():
        if seconds is not None:
            guard.state.transcript.take(imported_before(package.name, seconds))
    check = wanted.check
    if check and (seconds := memory.seconds_of_check(check)) is not None:
        guard.state.transcript.take(checked_before(seconds))
        check = ()
    left = tuple(package for package in wanted.packages if known.get(package) is None)
    return replace(wanted, packages=left, check=check)


def _import(wanted: ImportStep, guard: Guard, below: Below, room: LayerRoom, memory: ImportMemory) -> None:
    """Run the import step `wanted`, and remember what succeeds."""
    state, packages = guard.state, {package.name: package for package in wanted.packages}
    sites: tuple[str, ...] = ()

    def take(line: str) -> None:
        nonlocal sites
        guard.require()  # before the first line is shown
        if (searched := searched_in(line)) is not None:
            sites = searched
        elif (traced := traced_in(line)) is None:
            state.transcript.take(line)
            if (seconds := checked_in(line)) is not None:
                memory.keep_check(wanted.check, seconds)
        elif traced.package in packages:
            memory.keep(packages[traced.package], traced.seconds, traced.trace)

    try:
        with explained(state):
            run_read_only(imports_over_layers(guard.lock, wanted), below, replace(room, take=take))
    except CtkError:
        guard.require()
        raise
    guard.require_with(sites)
    if failures(state.transcript.last_lines) or failed_check(state.transcript.last_lines) is not None:
        raise state.failure(1)
