"""The base of a recipe on this machine: its path, how it is pulled, and what is mounted into it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.files import UvCopy
from toolkit.builds.room import RoomWatch, cause, disks
from toolkit.pins.bases.before_pull import lent_login, require_architecture
from toolkit.pins.bases.steady import PresentBase, require_unchanged
from toolkit.pins.guard.script import UV_MOUNT
from toolkit.recipes.model import Bootstrap
from toolkit.runtime.area import area_environment
from toolkit.support.certificates import trusting
from toolkit.support.errors import ProgramFailed
from toolkit.support.processes import stream
from toolkit.support.staging import put_in_place, staging

if TYPE_CHECKING:
    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.request import BuildRequest
    from toolkit.pins.store import Locks
    from toolkit.recipes.model import Base, Recipe
    from toolkit.support.paths import WorkArea


def present_base(request: BuildRequest, recipe: Recipe, context: BuildContext, listener: Listener) -> PresentBase:
    """The base of `recipe` as an image of this machine, so that its inventory can be read; pulled if needed.

    It is kept in the work area by its digest, and is pulled by it: a tag that moves changes nothing. A preview pulls
    nothing and asks no registry. Raises ProgramFailed (`base-not-brought`) if the base cannot be pulled, and WrongInput
    (`wrong-architecture`) if it is for another architecture.
    """
    state = request.base_state
    if recipe.base.bootstrap == Bootstrap.LOCALIMAGE:
        return PresentBase(Path(recipe.base.reference), None, state)
    digest = base_digest(recipe, context.locks, ask=not context.preview)
    if digest is None:
        return PresentBase(None, None, state)
    kept = kept_base(digest, context.area)
    if not kept.is_file():
        if context.preview:
            return PresentBase(None, digest, state)
        base = replace(recipe.base, digest=digest)
        require_architecture(base)
        listener.on_step(f"pulling the base {base.pinned_reference}")
        _pull(base, kept, request, context)
    return PresentBase(kept, digest, state)


def base_digest(recipe: Recipe, locks: Locks, *, ask: bool = True) -> str | None:
    """The digest by which the base is pulled and locked; None if it has none, or does not need a pull.

    `ask`: if it is not known here, ask the registry.
    """
    if recipe.base.bootstrap == Bootstrap.DOCKER:
        return recipe.base.digest or _registry_digest(recipe, locks, ask=ask)
    return locks.local_digest(recipe) if recipe.base.bootstrap in (Bootstrap.DOCKER_ARCHIVE, Bootstrap.OCI) else None


def kept_base(digest: str, area: WorkArea) -> Path:
    """The path of a pulled base with this digest."""
    return area.path / "bases" / f"{digest.removeprefix('sha256:')}.sif"


def has_mount_point(recipe: Recipe, image: Path | None) -> bool:
    """Whether the base has the directory that uv is bound onto: a bind to a missing path ends a build."""
    from toolkit.inventory.formats.images import open_image

    if image is None:
        return recipe.base.bootstrap == Bootstrap.DEBOOTSTRAP  # Debian's base-files has /mnt
    with open_image(image) as rootfs:
        return rootfs.is_directory(UV_MOUNT)


def uv_copy(area: WorkArea) -> UvCopy:
    """uv's program, to be bound into a build."""
    from toolkit.pins.index.uv import open_uv

    return UvCopy(Path(open_uv(area.path).program), area.path / "uv" / "uv")


def _pull(base: Base, image: Path, request: BuildRequest, context: BuildContext) -> None:
    reference = base.pinned_reference
    source = f"docker://{reference}" if base.bootstrap == Bootstrap.DOCKER else f"{base.bootstrap}:{reference}"
    image.parent.mkdir(parents=True, exist_ok=True)
    with staging(image.parent) as directory:
        lines: list[str] = []
        argv = context.runtime.build(
            directory / "base.sif", source, replace(request.options, sandbox=False), login=lent_login(base)
        )
        with RoomWatch(disks(context.area, None)).watching() as room:
            environment = {**area_environment(context.area), **trusting(), "TMPDIR": str(directory)}
            status = stream(argv, lines.append, env=environment)
        if status != 0:
            raise _not_brought(reference, status, lines, room)
        require_unchanged(request.base_state)
        put_in_place(directory / "base.sif", image)


def _not_brought(reference: str, status: int, lines: list[str], room: RoomWatch) -> ProgramFailed:
    known = cause(lines, room)
    return ProgramFailed(
        f"the base {reference} could not be pulled (status {status})" + (f": {known.meaning}" if known else ""),
        fix=known.fix if known else None,
        code="base-not-brought",
        last_lines=tuple(line for line in lines if line.strip())[-12:],
    )


def _registry_digest(recipe: Recipe, locks: Locks, *, ask: bool) -> str | None:
    """The digest that the lock has, else the registry's; None if the registry cannot be asked.

    Raises ProgramFailed if its certificate is not trusted.
    """
    from toolkit.pins.bases.registry import fetch_digest

    if (locked := locks.locked_digest(recipe)) is not None:
        return locked
    if not ask:
        return None
    try:
        return fetch_digest(recipe.base.reference)
    except ProgramFailed as error:
        if error.code == "certificate":  # the pull would be refused as well, after minutes of attempts
            raise
        return None
