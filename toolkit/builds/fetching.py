"""What a build needs from the network, brought beforehand: the base, the lock and its package files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.builds.form import Form
from toolkit.builds.layers.chain import kept_layers
from toolkit.builds.offline import missing_base, missing_beginning, needed_from_network
from toolkit.builds.pulling import registry_of
from toolkit.builds.resolve import resolve
from toolkit.definitions.layered import LayerName
from toolkit.pins.index.downloads import bring_files, kept_files
from toolkit.pins.lock.files import wanted_files
from toolkit.recipes.model import Bootstrap
from toolkit.store.store import Kind
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.request import BuildRequest
    from toolkit.pins.bases.steady import PresentBase
    from toolkit.pins.store import Found
    from toolkit.recipes.model import Recipe
    from toolkit.store.store import Store


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A package file. `size` is in bytes, None if it is not here; `new`: it was not here before."""

    name: str
    sha256: str
    size: int | None
    new: bool


@dataclass(frozen=True, slots=True)
class FetchedBase:
    """A base on this host. `reference` names it, by digest if it has one, or by its suite; `size` of the image is in
    bytes, 0 for a directory. `origin` is the registry or the Debian archive that it comes from, None for one of this
    host; `new`: it was not here before."""

    reference: str
    image: Path
    size: int
    origin: str | None = None
    new: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """What of a recipe is on this host now. `base` is None if it is not here; `left` is what a build still takes from
    the network, and `layered` what it does not take as the layers with it are kept. `runs_post`: a build runs `post`,
    as its layer is not kept."""

    recipe: str
    base: FetchedBase | None
    files: tuple[FetchedFile, ...]
    left: tuple[str, ...]
    locked: Found | None = None
    layered: tuple[str, ...] = ()
    runs_post: bool = False


def fetch(request: BuildRequest, recipe: Recipe, context: BuildContext, listener: Listener) -> Fetched:
    """Pull the base, update the lock and download its files; in a preview, say only what is here.

    What cannot be downloaded beforehand, such as packages of `apt`, is kept as the layers of a build whose image is
    thrown away. A request for a layered image keeps the layers in any case. Raises as `resolve`, `bring_files` and
    `execute` do.
    """
    before = _keys_of_bases(context.store)
    if context.preview:
        context = replace(context, offline=True)  # what is here counts, a base that debootstrap made too
    try:
        plan = resolve(request, context, listener, layers=True)
    except CtkError as error:
        missing = missing_base(recipe, context) if context.preview and error.code == "base-not-here" else None
        if missing is None:
            raise
        return Fetched(recipe.name, None, (), (missing,))  # what it installs is not known without it
    base = _fetched_base(recipe, plan.base, before, context)
    files = _files(plan, context, listener)
    needed = tuple(_needed(recipe, plan, files))
    kept = _kept_layers(recipe, plan, context)
    lacking = request.form is Form.LAYERED or not kept.issuperset(layer for layer, _ in needed)
    if plan.layers is not None and not context.preview and lacking:
        _keep_layers(plan, context, listener)
        kept = _kept_layers(recipe, plan, context)
    left = (*missing_beginning(recipe, context), *(what for layer, what in needed if layer not in kept))
    has_post = bool(recipe.post.strip())
    post = [(LayerName.TAIL, "the post script")] if has_post else []
    layered = tuple(what for layer, what in (*needed, *post) if layer in kept)
    return Fetched(
        recipe.name, base, files, left, plan.locked, layered, runs_post=has_post and LayerName.TAIL not in kept
    )


def _keys_of_bases(store: Store) -> frozenset[str]:
    """The bases in the user's own store."""
    try:
        return frozenset(path.name for path in (store.own / Kind.BASE).iterdir())
    except OSError:
        return frozenset()


def _fetched_base(
    recipe: Recipe, present: PresentBase, before: frozenset[str], context: BuildContext
) -> FetchedBase | None:
    image = present.image
    if image is None:
        return None
    base = replace(recipe.base, digest=present.digest or recipe.base.digest)
    is_debian = base.bootstrap == Bootstrap.DEBOOTSTRAP
    origin = registry_of(base) or (context.mirror if is_debian else None)
    new = image.is_relative_to(context.store.own) and image.parent.name not in before
    size = image.stat().st_size if image.is_file() else 0
    reference = os.path.normpath(base.path) if base.is_local else base.pinned_reference
    if is_debian:
        reference = f"{base.name} ({reference})"
    return FetchedBase(reference, image, size, origin, new)


def _keep_layers(plan: BuildPlan, context: BuildContext, listener: Listener) -> None:
    """Make the layers of a build, which the store keeps. Of the build itself, only the log of a failed one is kept."""
    from toolkit.builds.execute import execute

    directory = context.area.path / "fetch"
    directory.mkdir(mode=0o700, exist_ok=True)
    request = replace(plan.request, output=directory / plan.request.output.name)
    try:
        execute(replace(plan, request=request), context, listener)
    except WrongInput as error:
        if error.code == "build-in-progress":  # nothing of the other one is removed
            message = f"another ctk fetch writes the layers of {plan.request.target.text}"
            raise WrongInput(message, fix="Wait for it.", code=error.code) from None
        raise
    for path in (request.output, request.log):
        path.unlink(missing_ok=True)


def _files(plan: BuildPlan, context: BuildContext, listener: Listener) -> tuple[FetchedFile, ...]:
    if plan.locked is None:
        return ()
    lock = plan.locked.lock
    wanted = wanted_files(lock)
    before = kept_files(wanted, context.store)
    entries = dict(before)
    missing = [file for file in wanted if file.sha256 not in before]
    if missing and not context.preview:
        listener.on_step(f"downloading {count(len(missing), 'package file')}")
        entries |= bring_files(missing, lock.indexes, context.store, listener.on_progress).entries
    return tuple(
        FetchedFile(
            file.name,
            file.sha256,
            entries[file.sha256].size if file.sha256 in entries else None,
            file.sha256 not in before,
        )
        for file in wanted
    )


def _needed(recipe: Recipe, plan: BuildPlan, files: tuple[FetchedFile, ...]) -> Iterator[tuple[LayerName, str]]:
    """What a build takes from the network unless the layer with it is kept."""
    yield from needed_from_network(recipe, plan.locked.lock if plan.locked is not None else None)
    yield from ((LayerName.PACKAGES, file.name) for file in files if file.size is None)


def _kept_layers(recipe: Recipe, plan: BuildPlan, context: BuildContext) -> frozenset[LayerName]:
    if plan.layers is None or plan.base.image is None:
        return frozenset()
    return frozenset(kept_layers(plan.layers, recipe, plan.base.image, plan, context))
