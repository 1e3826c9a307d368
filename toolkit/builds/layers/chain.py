"""The keys of a build's layers, from the first step on, and which of the layers the store has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.bases import base_key
from toolkit.builds.inputs import copied_digest
from toolkit.builds.layers.added import KnownGroups, divided
from toolkit.builds.layers.keys import InputContent, MadeWith, first_key, step_key
from toolkit.builds.layers.metadata import full_version
from toolkit.builds.layers.pack import packer_version
from toolkit.builds.variables import variables_digest
from toolkit.definitions.layered import LayerName
from toolkit.recipes.architectures import host_architecture
from toolkit.store.store import Kind
from toolkit.support.content import content_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.builds.context import BuildContext
    from toolkit.builds.layers.added import Part
    from toolkit.builds.plan import BuildPlan
    from toolkit.definitions.layered import LayeredSteps, LayerStep
    from toolkit.definitions.steps import Input
    from toolkit.recipes.model import Recipe


def key_of_base(recipe: Recipe, base: Path, plan: BuildPlan, context: BuildContext) -> str:
    """The key before the first step, over the image `base`.

    What debootstrap made has no digest from elsewhere: its own content counts.
    """
    locks, options = context.locks, plan.request.options
    digest = plan.base.digest or locks.local_digest(recipe) or content_digest(base, locks.cache)
    runtime = f"{context.runtime.product} {full_version(context.runtime)}"
    variables = variables_digest(recipe.indexes)
    tools = MadeWith(host_architecture(), runtime, packer_version() or "", options.compression, variables)
    return first_key(base_key(digest, recipe.base), tools)


def key_of_step(step: LayerStep, before: str, plan: BuildPlan, context: BuildContext, *, network: bool = True) -> str:
    """The key of a step's layer, over what has the key `before`. `network`: whether its script could use one.

    Raises as `copied_digest` does.
    """

    def content(copied: Input) -> InputContent:
        digest = copied_digest(copied.source, context.locks.cache, fresh=plan.request.force)
        return InputContent(copied.path, Path(os.path.normpath(copied.source)).name, digest)

    installer = plan.record.tools.installer if step.name is LayerName.PACKAGES else None
    inputs = [content(copied) for copied in step.inputs]
    program = installer.partition(" ")[0] if installer else None
    return step_key(before, step.script, inputs, installer=program, network=network)


def known_groups(before: str, context: BuildContext) -> KnownGroups:
    """What was installed over what has the key `before`."""
    return KnownGroups(context.locks.cache / "package-layers", before)


def over_kept(before: str, plan: BuildPlan, context: BuildContext) -> tuple[tuple[Part, ...], str] | None:
    """The packages of the lock by layers that the store has but for the last one, and the key of the last one.

    Of what earlier builds installed, that to which the lock adds least is taken. None if there is nothing.
    """
    lock = plan.locked.lock if plan.locked else None
    found = []
    for groups in known_groups(before, context).read():
        parts, key = divided(lock, groups) if lock is not None else None, before
        if parts is None:
            continue
        for number, part in enumerate(parts):
            key = key_of_step(part.step, key, plan, context)
            if number < len(groups) and context.store.find(Kind.LAYER, key) is None:
                break
        else:
            found.append((sum(len(part.lock.packages) for part in parts[len(groups) :]), len(parts), parts, key))
    if not found:
        return None
    _, _, parts, key = min(found, key=lambda way: way[:2])
    return parts, key


def kept_layers(
    steps: LayeredSteps, recipe: Recipe, base: Path, plan: BuildPlan, context: BuildContext
) -> Iterator[LayerName]:
    """The steps that a build over `base` would not run: their layers are in the store."""
    before = key_of_base(recipe, base, plan, context)
    for step in steps.layers:
        key = key_of_step(step, before, plan, context)
        if step.name is LayerName.PACKAGES and context.store.find(Kind.LAYER, key) is None:
            way = over_kept(before, plan, context)
            key = way[1] if way is not None else key
        if context.store.find(Kind.LAYER, key) is None:
            return
        before = key
        yield step.name
