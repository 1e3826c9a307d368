"""Copies of what other users can change, made and hashed before anything is built from it.

A digest is remembered as long as a file keeps its times. On tmpfs, a write through a shared memory map leaves them as
they are, and then an image would not be made of what its lock names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.pulling import about_base
from toolkit.definitions.definition import file_line
from toolkit.definitions.steps import Input, steps
from toolkit.inventory.formats.sif_edit import copy_base
from toolkit.store.keeping import forget_lost
from toolkit.store.publishing import writing
from toolkit.store.store import Kind
from toolkit.support.content import changed_unseen, content_digest, others_can_change_in, private_copy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.plan import BuildPlan
    from toolkit.definitions.layered import LayeredSteps


def own_image(image: Path, context: BuildContext, listener: Listener) -> Path:
    """The file from which an image is built over the base `image`: that in the store if other users can change it.

    There it is kept by its digest. A directory is copied by the build itself. Raises CheckFailed (`base-changed`) if
    the copy does not have the digest that the lock has or gets, and as `Store.publish` does.
    """
    if not image.is_file() or not others_can_change_in(image):
        return image
    store, cache = context.store, context.locks.cache
    digest = content_digest(image, cache)
    key = digest.removeprefix("sha256:")
    kept = store.find(Kind.BASE, key)
    if kept is None or kept.digest != digest:
        listener.on_step(f"copying the base {image.name}, which another user can change")
        with store.staging() as directory, writing(store.own):
            copy = directory / "image.sif"
            copy_base(image, copy, listener.on_progress)
            kept = store.publish(Kind.BASE, key, copy, about_base(image.name, digest))
        if kept.digest != digest:
            store.discard(Kind.BASE, key)
            forget_lost()  # this was no other process
            raise changed_unseen(image, cache)
    return kept.path


@dataclass(frozen=True, slots=True)
class PrivateFiles:
    """Those of `[[files]]` that other users can change are copied into `directory`, and the build takes the copies.

    `copies` are their paths there by what is copied; `lines` are the lines of a definition that name them, the old by
    the new.
    """

    directory: Path
    cache: Path
    copies: Mapping[Path, Path]
    lines: Mapping[str, str]

    @classmethod
    def of(cls, plan: BuildPlan, context: BuildContext, directory: Path) -> PrivateFiles | None:
        """The files of a build; None if nobody else can change any, or the build is only printed."""
        recipe, lock = plan.request.recipe, plan.locked.lock if plan.locked else None
        if recipe is None or context.preview:
            return None
        copies: dict[Path, Path] = {}
        for number, copy in enumerate(recipe.files, 1):
            if others_can_change_in(copy.source, follow=True):
                name = Path(os.path.normpath(copy.source)).name or "root"
                copies.setdefault(copy.source, Path("files", str(number), name))
        if not copies:
            return None
        inputs = [item for step in steps(recipe, lock) for item in step.inputs if item.source in copies]
        what = f"{recipe.path}: a path in [[files]]"
        lines = {file_line(item, what): file_line(Input(copies[item.source], item.path), what) for item in inputs}
        return cls(directory, context.locks.cache, copies, lines)

    def in_text(self, text: str) -> str:
        """A definition with the copies, by paths from `directory`, where the runtime is started."""
        for old, new in self.lines.items():
            before, found, after = text.partition(f" {old}\n")
            if not found:
                raise ValueError(f"the definition does not copy {old}")
            text = f"{before} {new}\n{after}"
        return text

    def in_layers(self, layers: LayeredSteps) -> LayeredSteps:
        """The steps of a layered image with the copies."""

        def copied(item: Input) -> Input:
            copy = self.copies.get(item.source)
            return item if copy is None else replace(item, source=self.directory / copy)

        made = (replace(step, inputs=tuple(map(copied, step.inputs))) for step in layers.layers)
        return replace(layers, layers=tuple(made))

    def shell(self) -> str:
        """A script is printed before anything is copied."""
        return "# `ctk build` copies the files here that other users can change."

    def run(self, _state: object = None) -> None:
        """Copy them. Raises as `private_copy` does."""
        for source, copy in self.copies.items():
            (self.directory / copy).parent.mkdir(parents=True)
            private_copy(source, self.directory / copy, self.cache, follow=True)
