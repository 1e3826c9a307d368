"""From a recipe to its definition: the base brought here, the lock found or made, the guard written in."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.inputs import inputs_of
from toolkit.builds.permission import check_permission
from toolkit.builds.plan import unpacked_size
from toolkit.builds.record import read_record
from toolkit.builds.room import RoomWatch, cause, check_room, disks
from toolkit.definitions.definition import define
from toolkit.definitions.labels import has_labels_of_ctk
from toolkit.pins.guard import UV_MOUNT
from toolkit.pins.lockfile import load_lock
from toolkit.pins.steady import NOT_HERE, PresentBase, require_unchanged, unchanged
from toolkit.runtime.area import area_environment
from toolkit.support.certificates import trusting
from toolkit.support.errors import ProgramFailed, WrongInput
from toolkit.support.ownership import is_trusted
from toolkit.support.processes import stream
from toolkit.support.staging import put_in_place, staging

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.record import Record
    from toolkit.definitions.definition import Definition
    from toolkit.pins.model import Lock
    from toolkit.pins.steady import BaseState
    from toolkit.pins.store import Found, Locks
    from toolkit.recipes.model import Base, Recipe
    from toolkit.runtime.engine import BuildOptions, Runtime
    from toolkit.support.paths import WorkArea


def find_lock(recipe: Recipe, locks: Locks, base: PresentBase = NOT_HERE) -> Found | None:
    """The lock to build `recipe` with; None where nothing is installed that a guard could watch. See `Locks.for_build`.

    Raises AnswerIsNo where the lock may not be updated and is out of date, or where packages conflict with the base.
    """
    if not (recipe.packages or recipe.post.strip()):
        return None
    try:
        return locks.for_build(recipe, base)
    except WrongInput as error:
        if error.code == "no-python" and not recipe.packages:
            return None
        raise


def prepare(
    plan: BuildPlan,
    locks: Locks,
    runtime: Runtime,
    area: WorkArea,
    options: BuildOptions,
    *,
    mirror: str | None,
    on_step: Callable[[str], None],
) -> BuildPlan:
    """The plan with all that the build of its recipe needs; a plan of something else as it is.

    Raises as `find_lock` does, WrongInput where this user may not write the output, MissingOnHost where there is too
    little room, and ProgramFailed where the base cannot be brought here.
    """
    check_permission(plan)
    area.create()
    check_room(plan, area)
    recipe = plan.recipe
    if recipe is None:
        return plan
    locks.require(recipe)
    image = digest = None
    with unchanged(plan.base_state):
        if recipe.packages or recipe.post.strip():
            digest = base_digest(recipe, locks)
            image = _bring_base(recipe.base, digest, plan.base_state, runtime, area, options, on_step)
            on_step("choosing the versions of the packages")
        found = find_lock(recipe, locks, PresentBase(image, digest, plan.base_state))
        lock = found.lock if found else None
        definition = _define(recipe, lock, mirror)
        inputs = inputs_of(plan, definition, lock, locks, runtime, options)
    with_uv = lock is not None and lock.packages and has_mount_point(recipe, image)
    return replace(
        plan,
        definition=definition,
        locked=found,
        record=replace(plan.record, inputs=inputs),
        binds=(f"{folder_with_uv(area)}:{UV_MOUNT}",) if with_uv else (),
        base_size=max(plan.base_size, unpacked_size(image) if image else 0),
    )


def preview(plan: BuildPlan, locks: Locks, mirror: str | None) -> BuildPlan:
    """The plan with its definition, as far as that is known without bringing the base here; `./defs` stays as it is."""
    recipe = plan.recipe
    if recipe is None:
        return plan
    locks.require(recipe)
    found = find_lock(recipe, locks)
    return replace(plan, definition=_define(recipe, found.lock if found else None, mirror), locked=found)


def unchanged_record(
    plan: BuildPlan, locks: Locks, runtime: Runtime, options: BuildOptions, *, mirror: str | None
) -> Record | None:
    """The record of the image that stands at the output, where a build would make the same one; else None.

    Nothing is brought here, resolved or written for it. A sandbox is always built: its files can be changed at any
    time, and ctk would not notice. So is what another user put there: anybody can write a record.
    """
    recipe = plan.recipe
    if recipe is None or plan.sandbox or plan.force or not plan.output.is_file():
        return None
    if not is_trusted(plan.output.stat().st_uid):
        return None
    record = read_record(plan.output)
    if record is None or not record.inputs or record.target != plan.record.target:
        return None
    lock = locks.current(recipe) if recipe.packages or recipe.post.strip() else None
    if lock is None and recipe.packages:
        return None
    inputs = inputs_of(plan, _define(recipe, lock, mirror), lock, locks, runtime, options)
    return record if inputs == record.inputs else None


def _define(recipe: Recipe, lock: Lock | None, mirror: str | None) -> Definition:
    return define(recipe, lock=lock, mirror=mirror, relabel=has_labels_of_ctk(recipe.base))


def base_digest(recipe: Recipe, locks: Locks) -> str | None:
    """The digest by which the base is brought here and locked; None where it has none, or needs not be brought."""
    if recipe.base.bootstrap == "docker":
        return _registry_digest(recipe, locks)
    return locks.local_digest(recipe) if recipe.base.bootstrap in ("docker-archive", "oci") else None


def _bring_base(
    base: Base,
    digest: str | None,
    state: BaseState | None,
    runtime: Runtime,
    area: WorkArea,
    options: BuildOptions,
    on_step: Callable[[str], None],
) -> Path | None:
    """The base as an image of this machine, so that its inventory can be read; None where it cannot be brought.

    It is kept in the work area by its digest, and comes by it: a tag that moves changes nothing.
    """
    if base.bootstrap == "localimage":
        return Path(base.reference)
    if digest is None:
        return None
    pinned = replace(base, digest=digest).pinned_reference
    source = f"docker://{pinned}" if base.bootstrap == "docker" else f"{base.bootstrap}:{base.reference}"
    image = kept_base(digest, area)
    if image.is_file():
        return image
    image.parent.mkdir(parents=True, exist_ok=True)
    on_step(f"bringing the base {base.reference} here")
    with staging(image.parent) as folder:
        lines: list[str] = []
        argv = runtime.build(folder / "base.sif", source, replace(options, sandbox=False))
        with RoomWatch(disks(area, None)).watching() as room:
            status = stream(argv, lines.append, env={**area_environment(area), **trusting(), "TMPDIR": str(folder)})
        if status != 0:
            raise _not_brought(base.reference, status, lines, room)
        require_unchanged(state)
        put_in_place(folder / "base.sif", image)
    return image


def kept_base(digest: str, area: WorkArea) -> Path:
    """Where the base of this digest is kept once a build has brought it here."""
    return area.path / "bases" / f"{digest.removeprefix('sha256:')}.sif"


def _not_brought(reference: str, status: int, lines: list[str], room: RoomWatch) -> ProgramFailed:
    complaint = cause(lines, room)
    return ProgramFailed(
        f"the base {reference} could not be brought here (status {status})"
        + (f": {complaint.meaning}" if complaint else ""),
        fix=complaint.fix if complaint else None,
        code="base-not-brought",
        last_lines=tuple(line for line in lines if line.strip())[-12:],
    )


def _registry_digest(recipe: Recipe, locks: Locks) -> str | None:
    """The digest that the lock has, else the registry's; None where the registry cannot be asked.

    Raises ProgramFailed where its certificate is not trusted.
    """
    from toolkit.pins.registry import fetch_digest

    path = locks.path(recipe)
    if path.is_file():
        locked = load_lock(path).base
        if locked.digest is not None and locked.reference == recipe.base.reference:
            return locked.digest
    if recipe.base.digest is not None:
        return recipe.base.digest
    try:
        return fetch_digest(recipe.base.reference)
    except ProgramFailed as error:
        if error.code == "certificate":  # the pull would be refused as well, after minutes of attempts
            raise
        return None


def has_mount_point(recipe: Recipe, image: Path | None) -> bool:
    """Whether the base has the folder that uv is bound onto: a bind onto a path that is not there ends a build."""
    from toolkit.inventory.images import open_image

    if image is None:
        return recipe.base.bootstrap == "debootstrap"  # Debian's base-files has /mnt
    with open_image(image) as rootfs:
        return rootfs.is_folder(UV_MOUNT)


def folder_with_uv(area: WorkArea) -> Path:
    """A folder with uv's program and nothing else, to be bound into the build."""
    from toolkit.pins.uv import open_uv

    program = Path(open_uv(area.path).program)
    folder = area.path / "uv"
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / "uv"
    if not copy.is_file() or copy.stat().st_mtime_ns != program.stat().st_mtime_ns:
        temporary = folder / f".uv.{os.getpid()}"
        shutil.copy2(program, temporary)
        temporary.replace(copy)
    return folder
