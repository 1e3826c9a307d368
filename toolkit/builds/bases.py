"""The base of a recipe on this machine: one door to the store for all commands, and what is mounted into a base."""

from __future__ import annotations

import contextlib
import hashlib
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.files import UvCopy
from toolkit.builds.private import own_image
from toolkit.builds.pulling import Maker, about_base, pull_base
from toolkit.builds.tags import ask_digest, remembered_digest
from toolkit.definitions.places import reserved_paths
from toolkit.definitions.steps import steps
from toolkit.inventory.formats.sif_digests import require_undamaged
from toolkit.inventory.formats.squashfs_check import read_back
from toolkit.pins.bases.before_pull import require_architecture
from toolkit.pins.bases.steady import NOT_HERE, PresentBase, state_of
from toolkit.pins.bases.target import is_recorded
from toolkit.pins.guard.script import UV_MOUNT
from toolkit.recipes.architectures import architecture_of, host_architecture
from toolkit.recipes.model import Bootstrap
from toolkit.runtime.engine import BuildOptions
from toolkit.store.store import Kind, open_store
from toolkit.support.errors import CtkError, ProgramFailed, WrongInput
from toolkit.support.mirror import debian_mirror
from toolkit.support.ownership import is_trusted
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.request import BuildRequest
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.store import Locks
    from toolkit.recipes.model import Base, Recipe
    from toolkit.runtime.engine import Runtime
    from toolkit.store.store import Store
    from toolkit.support.paths import WorkArea


@dataclass(frozen=True, slots=True)
class Pulling:
    """What a pull needs, if there is one: the runtime is looked for only then."""

    runtime: Callable[[], Runtime]
    listener: Listener


def present_base(request: BuildRequest, recipe: Recipe, context: BuildContext, listener: Listener) -> PresentBase:
    """The base of `recipe` as an image of this machine, so that its inventory can be read; pulled if needed.

    It is kept in the store by its digest, and is pulled by it: a tag that moves changes nothing. What debootstrap makes
    is kept by the state of the archive. A preview pulls nothing and asks no registry. Raises ProgramFailed
    (`base-not-brought`, `image-damaged`) if the base cannot be pulled or made, and WrongInput (`corrupt-image`) if it
    is an image that ctk built and that was damaged since.
    """
    state = request.base_state
    if recipe.base.bootstrap == Bootstrap.LOCALIMAGE:
        require_architecture(recipe.base)
        if context.preview:
            return PresentBase(recipe.base.path, None, state)
        image = own_image(recipe.base.path, context, listener)
        fix = f"Build or copy {recipe.base.path} again."
        require_undamaged(image, context.locks.cache, fix, listener.on_progress)
        return PresentBase(image, None, state)
    maker = Maker(context.area, context.store, context.runtime, request.options, listener)
    if recipe.base.bootstrap == Bootstrap.DEBOOTSTRAP:
        return PresentBase(_bootstrapped(recipe.base, context, maker), None, state)
    digest = present_digest(recipe, context, listener.note)
    if digest is None:
        return PresentBase(None, None, state)
    kept = find_base(digest, context.store, recipe.base)
    if kept is None:
        if context.preview:
            return PresentBase(None, digest, state)
        base = replace(recipe.base, digest=digest)
        require_architecture(base)
        kept = pull_base(base, base_key(digest, base), state, maker).path
    else:
        _tell_kept(recipe.base, listener)
    return PresentBase(kept, digest, state)


def _tell_kept(base: Base, listener: Listener) -> None:
    listener.on_step_done(f"the base {base.reference}", 0.0, cached=True)


def registry_base(
    request: BuildRequest, base: Base, context: BuildContext, listener: Listener
) -> tuple[Base, PresentBase]:
    """As `present_base`, for a build that is no recipe's: the base by its digest, and its image.

    Where a registry does not tell the digest, and for other bases, nothing is pulled: the runtime does.
    """
    if base.bootstrap != Bootstrap.DOCKER or context.preview:
        return base, NOT_HERE
    cache = context.locks.cache
    digest = base.digest or (
        remembered_digest(base.reference, cache)
        if context.offline
        else _asked_digest(base, cache, listener.note, needed=False)
    )
    if digest is None:
        return base, NOT_HERE
    base = replace(base, digest=digest)
    kept = find_base(digest, context.store, base)
    if kept is None:
        maker = Maker(context.area, context.store, context.runtime, request.options, listener)
        kept = pull_base(base, base_key(digest, base), request.base_state, maker).path
    else:
        _tell_kept(base, listener)
    return base, PresentBase(kept, digest, request.base_state)


def _bootstrapped(base: Base, context: BuildContext, maker: Maker) -> Path | None:
    """The image of a base that debootstrap makes; None in a preview, and where no archive is configured."""
    from toolkit.builds.bootstrapped import bootstrapped_base, kept_bootstrapped

    if context.offline:
        return kept_bootstrapped(base, context.mirror, context.store)
    if context.preview or context.mirror is None:
        return None
    return bootstrapped_base(base, context.mirror, maker)


def base_to_read(
    recipe: Recipe, locks: Locks, area: WorkArea, pulling: Pulling, *, pull: bool, fresh: bool = False
) -> PresentBase:
    """The image of a base, for a lock without a build.

    An archive of this machine is unpacked to the work area. Of a registry's image only what was pulled before is used,
    unless `pull` is true and the Python of the base is not recorded. `fresh`: the digest in the lock does not count. A
    registry's image for another architecture is never here: of an index, the runtime takes the image for this host.
    Raises as `present_base` does.
    """
    base, architecture = recipe.base, architecture_of(recipe)
    if not base.is_local and architecture != host_architecture():
        return NOT_HERE
    if is_recorded(base):
        return _kept_of_recorded(recipe, locks, area, fresh=fresh)
    digest = base_digest(recipe, locks, fresh=fresh, note=pulling.listener.note)
    if digest is None:
        return NOT_HERE
    site, state = load_site(), state_of(base)
    store = open_store(area, site)
    kept = find_base(digest, store, base)
    if kept is None:
        if not (base.is_local or pull):
            return NOT_HERE
        area.create()
        runtime = pulling.runtime()
        base = replace(base, digest=digest)
        require_architecture(base, architecture)
        maker = Maker(area, store, runtime, BuildOptions.of_site(site), pulling.listener)
        kept = pull_base(base, base_key(digest, base), state, maker).path
    return PresentBase(kept, digest, state)


def _kept_of_recorded(recipe: Recipe, locks: Locks, area: WorkArea, *, fresh: bool) -> PresentBase:
    """What an earlier build left of a base whose content is recorded. A lock made from it holds for the next build."""
    from toolkit.builds.bootstrapped import kept_bootstrapped

    site, base = load_site(), recipe.base
    store, digest = open_store(area, site), None
    if base.bootstrap == Bootstrap.DEBOOTSTRAP:
        image = kept_bootstrapped(base, debian_mirror(site), store)
    else:
        digest = base_digest(recipe, locks, ask=False, fresh=fresh)
        image = find_base(digest, store, base) if digest is not None else None
    return PresentBase(image, digest, state_of(base)) if image is not None else NOT_HERE


def base_digest(
    recipe: Recipe, locks: Locks, *, ask: bool = True, fresh: bool = False, note: Callable[[str], None] | None = None
) -> str | None:
    """The digest by which the base is pulled and locked; None if it has none, or does not need a pull.

    `ask`: if it is not known here, ask the registry. `note` is told of further attempts; without it, there is one.
    `fresh`: the digest in the lock does not count. Raises as `fetch_digest` does if the build cannot do without the
    digest.
    """
    base = recipe.base
    if base.bootstrap != Bootstrap.DOCKER:
        return locks.local_digest(recipe) if base.bootstrap in (Bootstrap.DOCKER_ARCHIVE, Bootstrap.OCI) else None
    known = base.digest or (None if fresh else locks.locked_digest(recipe))
    if known is not None or not ask:
        return known
    return _asked_digest(base, locks.cache, note, needed=recipe.needs_guard and not is_recorded(base))


def present_digest(recipe: Recipe, context: BuildContext, note: Callable[[str], None] | None) -> str | None:
    """As `base_digest`, for a build: a preview and an offline build ask no registry."""
    if context.offline or context.preview:
        return known_digest(recipe, context.locks)
    return base_digest(recipe, context.locks, note=note)


def known_digest(recipe: Recipe, locks: Locks) -> str | None:
    """As `base_digest`, without a question to the registry: for a tag without a lock, what it said last."""
    digest = base_digest(recipe, locks, ask=False)
    if digest is None and recipe.base.bootstrap == Bootstrap.DOCKER:
        digest = remembered_digest(recipe.base.reference, locks.cache)
    return digest


def kept_base(digest: str, area: WorkArea, base: Base | None = None) -> Path:
    """The path of a pulled base with this digest: no file is there if the store has no whole image of it."""
    store = open_store(area, load_site())
    return find_base(digest, store, base) or store.own / Kind.BASE / base_key(digest, base) / "image.sif"


def base_key(digest: str, base: Base | None = None) -> str:
    """The key of a base in the store: its digest, unless that does not say all.

    One archive can have several images, and one index an image for each architecture; x86-64 is what most hosts have.
    """
    parts = [digest.removeprefix("sha256:")]
    if base is not None and base.bootstrap in (Bootstrap.DOCKER_ARCHIVE, Bootstrap.OCI):
        parts += filter(None, [base.reference.partition(":")[2]])
    if (architecture := host_architecture()) != "x86_64":
        parts.append(architecture)
    return parts[0] if len(parts) == 1 else hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()


def find_base(digest: str, store: Store, base: Base | None = None) -> Path | None:
    """The image of a base with this digest in the store; None if it is not there.

    What an earlier ctk kept as `bases/DIGEST.sif` in the work area is moved into the store, if it is whole.
    """
    key = base_key(digest, base)
    found = store.find(Kind.BASE, key)
    if found is None and (old := _earlier(digest, store)) is not None:
        reference = base.pinned_reference if base is not None else digest
        with contextlib.suppress(CtkError):
            read_back(old)
            found = store.publish(Kind.BASE, key, old, about_base(reference, digest))
    return found.path if found is not None else None


def _earlier(digest: str, store: Store) -> Path | None:
    """The image that an earlier ctk pulled; None if there is none, or another user could have written it."""
    path = store.own.parent / "bases" / f"{digest.removeprefix('sha256:')}.sif"
    with contextlib.suppress(OSError):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and is_trusted(status.st_uid) and not status.st_mode & 0o022:
            return path
    return None


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


def _asked_digest(base: Base, cache: Path, note: Callable[[str], None] | None, *, needed: bool) -> str | None:
    """What the registry says. None if it cannot be asked and the digest is not `needed`: the runtime may know another
    way to it. But a certificate that is not trusted would end its pull as well, after minutes of attempts.
    """
    try:
        return ask_digest(base.reference, cache, note)
    except ProgramFailed as error:
        if needed or error.code == "certificate":
            raise
        return None
