"""The steps of an image as those of a layered build: one script for each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.definitions.steps import StepName, beginning, joined, lock_steps, steps
from toolkit.pins.guard.script import import_script, layer_scripts
from toolkit.pins.guard.trials import import_step
from toolkit.support.enums import StrEnum

if TYPE_CHECKING:
    from toolkit.definitions.steps import Input, Step
    from toolkit.pins.guard.trials import ImportStep
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Recipe


_TITLES = {
    StepName.APT: "Debian packages",
    StepName.PACKAGES: "Python packages",
    StepName.FILES: "files",
    StepName.POST: "post script",
}


_MAX_TITLE = 3  # packages by name

# What the definition itself becomes in an image is a layer of its own, which lies over all others: a changed variable
# repeats no script, and layers of scripts hold no path of this host.
METADATA = "metadata"


class LayerName(StrEnum):
    """What a layer is for; in the order of the layers."""

    APT = "apt"
    PACKAGES = "packages"
    TAIL = "tail"  # files, and the post script


@dataclass(frozen=True, slots=True)
class LayerStep:
    """What makes one layer: `inputs` are copied first, then `script` runs with `sh -ex`, unless it is empty.

    The trace of `-x` is read from the log: it names the command that failed, as that of the runtime in `%post` does.
    `title` says for people what the layer brings.
    """

    name: LayerName
    script: str
    inputs: tuple[Input, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class LayeredSteps:
    """What makes a layered image: its layers without that of its metadata, the lowest first; `imports` are the packages
    to import at the end."""

    layers: tuple[LayerStep, ...]
    imports: ImportStep | None = None


def layer_steps(recipe: Recipe, lock: Lock | None = None, *, relabel: bool = False) -> LayeredSteps:
    """The steps of `recipe` by layers: what changes rarely lies below.

    The scripts are those of `define`, with the guard's constraint file and the import step, but without its
    comparison, which is `toolkit.pins.guard.over_layers`. `relabel` and the errors are those of `steps`.
    """
    groups: dict[LayerName, list[Step]] = {name: [] for name in LayerName}
    chosen = steps(recipe, lock, relabel=relabel)
    places = _places({step.name for step in chosen})
    for step in chosen:
        for name in places[step.name]:
            groups[name].append(step)
    apt, _, rest = (joined(groups[name]) for name in LayerName)
    wanted = import_step(lock, recipe.import_skip, recipe.environment, recipe.check) if lock else None
    may_install = any(step.name is StepName.POST for step in groups[LayerName.TAIL])
    scripts = layer_scripts(lock, apt=apt, packages="", rest=rest, may_install=may_install)
    made = {
        name: LayerStep(
            name,
            _whole(script),
            tuple(copied for step in groups[name] for copied in step.inputs),
            _title({step.name for step in groups[name]}),
        )
        for name, script in ((LayerName.APT, scripts.apt), (LayerName.TAIL, scripts.tail))
    }
    if lock is not None:
        made[LayerName.PACKAGES] = packages_step(lock)
    layers = tuple(made[name] for name in LayerName if groups[name])
    return LayeredSteps(layers, wanted if wanted and (wanted.packages or wanted.check) else None)


def packages_step(lock: Lock) -> LayerStep:
    """What makes the layer of the packages of `lock`: no recipe and no other step decides it."""
    return _packages_step(lock, (StepName.PYTHON, StepName.PACKAGES, StepName.METADATA), _TITLES[StepName.PACKAGES])


def added_step(lock: Lock) -> LayerStep:
    """What makes a layer of the packages of `lock` over one of other packages."""
    names = [package.name for package in lock.packages]
    more = f" and {len(names) - _MAX_TITLE} more" if len(names) > _MAX_TITLE else ""
    return _packages_step(lock, (StepName.PACKAGES,), f"added {', '.join(names[:_MAX_TITLE])}{more}")


def _packages_step(lock: Lock, names: tuple[StepName, ...], title: str) -> LayerStep:
    script = joined(step for step in lock_steps(lock) if step.name in names)
    made = layer_scripts(lock, apt="", packages=script, rest="")
    return LayerStep(LayerName.PACKAGES, _whole(made.packages), title=title)


def imports_over_layers(lock: Lock, wanted: ImportStep) -> str:
    """The script that imports `wanted` of the lock in a read-only container of the finished layers."""
    return _whole(import_script(lock, wanted))


def _places(names: set[StepName]) -> dict[StepName, tuple[LayerName, ...]]:
    """The layers of each step. No step after the packages decides what their layer is made of."""
    places: dict[StepName, tuple[LayerName, ...]] = dict.fromkeys(StepName, (LayerName.TAIL,))
    places[StepName.APT] = (LayerName.APT,)
    if StepName.PACKAGES in names:
        # A container takes half a second, and each layer delays the start of later ones: small steps get none.
        places |= dict.fromkeys((StepName.PYTHON, StepName.PACKAGES, StepName.METADATA), (LayerName.PACKAGES,))
        if names & {StepName.FILES, StepName.POST}:
            places[StepName.METADATA] = (LayerName.PACKAGES, LayerName.TAIL)  # they may bring labels, too
    return places


def _title(names: set[StepName]) -> str:
    """What a layer of these steps brings; the others are small: a name for Python, and labels of the base that go."""
    return " and ".join(words for name, words in _TITLES.items() if name in names) or "adjusting the base"


def _whole(script: str) -> str:
    return f"{beginning()}\n\n{script}\n" if script else ""
