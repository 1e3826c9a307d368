"""What a build needs from the network, brought beforehand: the base, the lock and its package files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit.builds.bases import present_base
from toolkit.builds.offline import missing_base
from toolkit.builds.resolve import resolve
from toolkit.pins.index.downloads import bring_files, kept_files
from toolkit.pins.lock.files import fetched_by_build, wanted_files
from toolkit.runtime.area import scratch_of
from toolkit.support.staging import staging
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.request import BuildRequest
    from toolkit.pins.store import Found
    from toolkit.recipes.model import Recipe


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A package file. `size` is in bytes, None if it is not here; `new`: it was not here before."""

    name: str
    sha256: str
    size: int | None
    new: bool


@dataclass(frozen=True, slots=True)
class Fetched:
    """What of a recipe is on this host now. `base` is its image, None if it is not here; `left` is what a build still
    takes from the network."""

    recipe: str
    base: Path | None
    files: tuple[FetchedFile, ...]
    left: tuple[str, ...]
    locked: Found | None = None


def fetch(request: BuildRequest, recipe: Recipe, context: BuildContext, listener: Listener) -> Fetched:
    """Pull the base, update the lock and download its files; in a preview, say only what is here.

    What cannot be downloaded beforehand, such as packages of `apt`, is kept as the layers of a build whose image is
    thrown away. Raises as `resolve`, `bring_files` and `execute` do.
    """
    plan = resolve(request, context, listener)
    base = plan.base if recipe.installs else present_base(request, recipe, context, listener)
    files = _files(plan, context, listener)
    left = tuple(_left(recipe, plan, files, context))
    if left and plan.layers is not None and not context.preview:
        _keep_layers(plan, context, listener)
        left = ()
    return Fetched(recipe.name, base.image, files, left, plan.locked)


def _keep_layers(plan: BuildPlan, context: BuildContext, listener: Listener) -> None:
    """Make the layers of a build, which the store keeps."""
    from toolkit.builds.execute import execute

    with staging(scratch_of(context.area)) as directory:
        request = replace(plan.request, output=directory / plan.request.output.name)
        execute(replace(plan, request=request), context, listener)


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


def _left(recipe: Recipe, plan: BuildPlan, files: tuple[FetchedFile, ...], context: BuildContext) -> Iterator[str]:
    """What a build takes from the network all the same."""
    if (base := missing_base(recipe, context)) is not None:
        yield base
    if recipe.apt:
        yield f"the Debian packages {' '.join(recipe.apt)}"
    yield from (file.name for file in files if file.size is None)
    if plan.locked is not None:
        for package in fetched_by_build(plan.locked.lock):
            yield f"{package.name} ({package.url or 'no hash is known'})"
