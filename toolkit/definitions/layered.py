"""The steps of an image as those of a layered build: one script for each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.definitions.steps import StepName, beginning, joined, steps
from toolkit.pins.guard.script import layer_scripts
from toolkit.pins.guard.trials import import_step
from toolkit.support.enums import StrEnum

if TYPE_CHECKING:
    from toolkit.definitions.steps import Input, Step
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Recipe


class LayerName(StrEnum):
    """What a layer is for; in the order of the layers."""

    APT = "apt"
    PACKAGES = "packages"
    TAIL = "tail"


@dataclass(frozen=True, slots=True)
class LayerStep:
    """What makes one layer: `inputs` are copied first, then `script` runs with `sh -ex`, unless it is empty.

    The trace of `-x` is read from the log: it names the command that failed, as that of the runtime in `%post` does.
    """

    name: LayerName
    script: str
    inputs: tuple[Input, ...] = ()


def layer_steps(recipe: Recipe, lock: Lock | None = None, *, relabel: bool = False) -> tuple[LayerStep, ...]:
    """The steps of `recipe` by layers: what changes rarely lies below. The tail is always there.

    The scripts are those of `define`, with the guard's constraint file and the import step, but without its
    comparison, which is `toolkit.pins.guard.over_layers`. `relabel` and the errors are those of `steps`.
    """
    chosen = steps(recipe, lock, relabel=relabel)
    with_packages = any(step.name is StepName.PACKAGES for step in chosen)
    groups: dict[LayerName, list[Step]] = {name: [] for name in LayerName}
    for step in chosen:
        groups[_layer_of(step.name, with_packages)].append(step)
    apt, packages, rest = (joined(groups[name]) for name in LayerName)
    wanted = import_step(lock, recipe.import_skip, recipe.environment) if lock else None
    scripts = layer_scripts(lock, wanted, apt=apt, packages=packages, rest=rest)
    made = zip(LayerName, (scripts.apt, scripts.packages, scripts.tail), strict=True)
    return tuple(
        LayerStep(
            name,
            f"{beginning()}\n\n{script}\n" if script else "",
            tuple(copied for step in groups[name] for copied in step.inputs),
        )
        for name, script in made
        if groups[name] or name is LayerName.TAIL
    )


def _layer_of(step: StepName, with_packages: bool) -> LayerName:
    if step is StepName.APT:
        return LayerName.APT
    # Each layer delays the start of a container: the symlink `python` alone gets none.
    early = (StepName.PYTHON, StepName.PACKAGES) if with_packages else ()
    return LayerName.PACKAGES if step in early else LayerName.TAIL
