"""The steps of an image, in their order: what is done to the base, and what of this host it needs.

A definition is one rendering of this tuple. Each script expects what `begin.sh.j2` sets, and no other step's variables.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.definitions.places import STAGING
from toolkit.definitions.quoting import file_path, script, shell_word
from toolkit.definitions.readable import make_readable
from toolkit.pins.guard.script import INSTALL, UV_MOUNT
from toolkit.recipes.model import Bootstrap
from toolkit.support.enums import StrEnum
from toolkit.support.templates import render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Recipe

# What is mounted over the image while a script runs: only the runtime itself can put a file below it.
# Tried with Apptainer 1.4.5; UV_MOUNT is `ctk build`'s own.
_MOUNTED = ("/dev", "/proc", "/sys", "/tmp", "/var/tmp", "/etc/hosts", "/etc/resolv.conf", UV_MOUNT)  # noqa: S108


class StepName(StrEnum):
    """What a step does; in the order of the steps."""

    APT = "apt"
    PYTHON = "python"
    PACKAGES = "packages"
    FILES = "files"
    POST = "post"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Input:
    """A file or directory of this host, and the path at which the step's script finds it in the image."""

    source: Path
    path: str


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a build: a script for `sh -e` in the image, after its inputs were copied with symlinks followed.

    The script is empty where copying the inputs is all there is to do. That of the packages calls the guard's tools.
    """

    name: StepName
    script: str
    inputs: tuple[Input, ...] = ()


def steps(recipe: Recipe, lock: Lock | None = None, *, relabel: bool = False) -> tuple[Step, ...]:
    """The steps that make the image of `recipe` from its base. Without a lock there is no step for packages.

    `relabel`: the base has labels of ctk, which must go even where the recipe needs no script. Wherever there is one,
    an image that has only `python3` gets `python`; a base of Debian's archive, or a job's command that says `python`,
    is reason enough.

    Raises WrongInput if a value is not allowed in a definition.
    """
    own = [*_apt(recipe, lock), *_files(recipe), *_post(recipe)]
    python = recipe.base.bootstrap == Bootstrap.DEBOOTSTRAP or recipe.job.command[:1] == ("python",)
    if lock is not None:
        own += lock_steps(lock)
    elif relabel or python or any(step.script for step in own):
        own += _adjusting()
    order = list(StepName)
    return tuple(sorted(own, key=lambda step: order.index(step.name)))


def lock_steps(lock: Lock) -> tuple[Step, ...]:
    """Those of `steps` that follow from a lock alone, in their order."""
    python, metadata = _adjusting()
    return (python, *([Step(StepName.PACKAGES, INSTALL)] if lock.packages else ()), metadata)


def _adjusting() -> tuple[Step, Step]:
    return Step(StepName.PYTHON, _text(StepName.PYTHON)), Step(StepName.METADATA, _text(StepName.METADATA))


def joined(chosen: Iterable[Step]) -> str:
    """The scripts of some steps as one text, each below its name."""
    return "\n".join(f"\n    # Step: {step.name}\n{step.script}" for step in chosen if step.script)


def beginning() -> str:
    """What comes before the script of a step, once in each shell that runs some: settings of the shell."""
    return _text("begin")


def _apt(recipe: Recipe, lock: Lock | None) -> list[Step]:
    uses_git = lock is not None and any(package.file is None for package in lock.packages)
    if not recipe.apt and not uses_git:
        return []
    return [Step(StepName.APT, _text(StepName.APT, apt=recipe.apt, uses_git=uses_git))]


def _files(recipe: Recipe) -> list[Step]:
    """The files are staged and moved into place after the packages: a changed file leaves earlier steps as they are."""
    if not recipe.files:
        return []
    what = f"{recipe.path}: a path in [[files]]"
    staged: dict[int, str] = {}
    inputs, places = [], []
    for number, copy in enumerate(recipe.files, 1):
        source, target = str(copy.source), re.sub("/+", "/", copy.target)
        for path in (source, target):
            file_path(path, what)
        if _is_mounted(target):
            inputs.append(Input(copy.source, target))
            continue
        staged[number] = f"{STAGING}/{number}/{Path(os.path.normpath(source)).name or 'root'}"
        inputs.append(Input(copy.source, staged[number]))
        places.append((shell_word(staged[number], what), shell_word(target, what)))
    values = {"places": places, "readable": make_readable(recipe, staged), "staging": STAGING}
    return [Step(StepName.FILES, _text(StepName.FILES, **values) if places else "", tuple(inputs))]


def _is_mounted(target: str) -> bool:
    path = posixpath.normpath(target)
    return any(path == mounted or path.startswith(f"{mounted}/") for mounted in _MOUNTED)


def _post(recipe: Recipe) -> list[Step]:
    """The user's script, in a shell of its own: an `exit` or a `trap` in it ends nothing but itself."""
    text = script(recipe.post, f"{recipe.path}: post")
    return [Step(StepName.POST, _text(StepName.POST, post=text))] if text else []


def _text(template: str, **values: object) -> str:
    return render(f"defs/templates/steps/{template}.sh.j2", **values).rstrip("\n")
