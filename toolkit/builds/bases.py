"""The base of a recipe on this machine: its path, how it is pulled, and what is mounted into it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.files import UvCopy
from toolkit.builds.room import RoomWatch, cause, disks
from toolkit.definitions.places import reserved_paths
from toolkit.definitions.steps import steps
from toolkit.pins.bases.before_pull import lent_login, require_architecture
from toolkit.pins.bases.steady import NOT_HERE, PresentBase, require_unchanged, state_of
from toolkit.pins.bases.target import is_recorded
from toolkit.pins.guard.script import UV_MOUNT
from toolkit.recipes.architectures import architecture_of, host_architecture
from toolkit.recipes.model import Bootstrap
from toolkit.runtime.area import area_environment
from toolkit.runtime.engine import BuildOptions
from toolkit.support.certificates import trusting
from toolkit.support.errors import ProgramFailed, WrongInput
from toolkit.support.processes import stream
from toolkit.support.staging import put_in_place, staging

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.request import BuildRequest
    from toolkit.pins.bases.steady import BaseState
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.store import Locks
    from toolkit.recipes.model import Base, Recipe
    from toolkit.runtime.engine import Runtime
    from toolkit.support.paths import WorkArea


@dataclass(frozen=True, slots=True)
class Pulling:
    """What a pull needs, if there is one: the runtime is looked for only then."""

    runtime: Callable[[], Runtime]
    listener: Listener


def present_base(request: BuildRequest, recipe: Recipe, context: BuildContext, listener: Listener) -> PresentBase:
    """The base of `recipe` as an image of this machine, so that its inventory can be read; pulled if needed.

    It is kept in the work area by its digest, and is pulled by it: a tag that moves changes nothing. A preview pulls
    nothing and asks no registry. Raises ProgramFailed (`base-not-brought`) if the base cannot be pulled.
    """
    state = request.base_state
    if recipe.base.bootstrap == Bootstrap.LOCALIMAGE:
        require_architecture(recipe.base)
        return PresentBase(recipe.base.path, None, state)
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
        _pull(base, kept, state, options=request.options, area=context.area, runtime=context.runtime)
    return PresentBase(kept, digest, state)


def base_to_read(
    recipe: Recipe, locks: Locks, area: WorkArea, pulling: Pulling, *, pull: bool, fresh: bool = False
) -> PresentBase:
    """The image of a base whose Python is not recorded, for a lock without a build.

    An archive of this machine is unpacked to the work area. Of a registry's image only what was pulled before is used,
    unless `pull` is true. `fresh`: the digest in the lock does not count. A registry's image for another architecture
    is never here: of an index, the runtime takes the image for this host. Raises as `present_base` does.
    """
    base, architecture = recipe.base, architecture_of(recipe)
    elsewhere = base.bootstrap == Bootstrap.DOCKER and architecture != host_architecture()
    digest = None if elsewhere or is_recorded(base) else base_digest(recipe, locks, fresh=fresh)
    if digest is None:
        return NOT_HERE
    kept, state = kept_base(digest, area), state_of(base)
    if not kept.is_file():
        if not (base.is_local or pull):
            return NOT_HERE
        area.create()
        runtime = pulling.runtime()
        base = replace(base, digest=digest)
        require_architecture(base, architecture)
        pulling.listener.on_step(f"pulling the base {base.pinned_reference}")
        _pull(base, kept, state, options=BuildOptions(), area=area, runtime=runtime)
    return PresentBase(kept, digest, state)


def base_digest(recipe: Recipe, locks: Locks, *, ask: bool = True, fresh: bool = False) -> str | None:
    """The digest by which the base is pulled and locked; None if it has none, or does not need a pull.

    `ask`: if it is not known here, ask the registry. `fresh`: the digest in the lock does not count.
    """
    if recipe.base.bootstrap == Bootstrap.DOCKER:
        locked = None if recipe.base.digest or fresh else locks.locked_digest(recipe)
        return locked or _registry_digest(recipe.base, ask=ask)
    return locks.local_digest(recipe) if recipe.base.bootstrap in (Bootstrap.DOCKER_ARCHIVE, Bootstrap.OCI) else None


def kept_base(digest: str, area: WorkArea) -> Path:
    """The path of a pulled base with this digest."""
    return area.path / "bases" / f"{digest.removeprefix('sha256:')}.sif"


def refuse_reserved(recipe: Recipe, lock: Lock | None, image: Path | None) -> None:
    """Raise WrongInput (`base-reserved-path`) if the base has files where the build puts its own.

    The runtime would write to them, and where they are symlinks, to files of this host.
    """
    from toolkit.inventory.formats.images import open_image

    made = steps(recipe, lock)
    if image is None or not made:
        return
    try:
        with open_image(image) as rootfs:
            top = rootfs.names("/")
    except WrongInput:
        return  # the runtime reads more formats, and knows what is wrong
    for path in reserved_paths(copied.path for step in made for copied in step.inputs):
        if path.strip("/") in top:
            raise WrongInput(
                f"{image}: the base has {path}, where a build puts files of its own",
                fix=f"Remove {path} from the base, or start from another one.",
                code="base-reserved-path",
            )


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


def _pull(
    base: Base, image: Path, before: BaseState | None, *, options: BuildOptions, area: WorkArea, runtime: Runtime
) -> None:
    reference = base.pinned_reference
    source = f"docker://{reference}" if base.bootstrap == Bootstrap.DOCKER else f"{base.bootstrap}:{reference}"
    image.parent.mkdir(parents=True, exist_ok=True)
    with staging(image.parent) as directory:
        lines: list[str] = []
        argv = runtime.build(directory / "base.sif", source, replace(options, sandbox=False), login=lent_login(base))
        with RoomWatch(disks(area, None)).watching() as room:
            environment = {**area_environment(area), **trusting(), "TMPDIR": str(directory)}
            status = stream(argv, lines.append, env=environment)
        if status != 0:
            raise _not_brought(reference, status, lines, room)
        require_unchanged(before)
        put_in_place(directory / "base.sif", image)


def _not_brought(reference: str, status: int, lines: list[str], room: RoomWatch) -> ProgramFailed:
    known = cause(lines, room)
    return ProgramFailed(
        f"the base {reference} could not be pulled (status {status})" + (f": {known.meaning}" if known else ""),
        fix=known.fix if known else None,
        code="base-not-brought",
        last_lines=tuple(line for line in lines if line.strip())[-12:],
    )


def _registry_digest(base: Base, *, ask: bool) -> str | None:
    """The recorded digest, else the registry's; None if it cannot be asked.

    Raises ProgramFailed if its certificate is not trusted.
    """
    from toolkit.pins.bases.registry import fetch_digest

    if base.digest is not None or not ask:
        return base.digest
    try:
        return fetch_digest(base.reference)
    except ProgramFailed as error:
        if error.code == "certificate":  # the pull would be refused as well, after minutes of attempts
            raise
        return None
