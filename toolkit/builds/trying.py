"""A trial: the packages of a recipe over its base, installed and imported in a throwaway layer. No image is built."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.bases import base_digest, has_mount_point, kept_base, uv_copy
from toolkit.builds.bootstrapped import kept_bootstrapped
from toolkit.builds.failure import Attempt, explain_failure
from toolkit.builds.files import TextFile
from toolkit.builds.lending import lend, lent_directory
from toolkit.builds.room import RoomWatch, disks
from toolkit.builds.transcript import Transcript
from toolkit.builds.values import read_value
from toolkit.builds.wheelhouse import Wheelhouse
from toolkit.definitions.definition import trial_script
from toolkit.inventory.formats.layers import layers_of
from toolkit.pins.guard.log import seconds_of_imports, successes
from toolkit.recipes.model import Bootstrap
from toolkit.runtime.area import area_environment, scratch_of
from toolkit.runtime.layer_check import checked
from toolkit.runtime.options import without_options
from toolkit.store.store import open_store
from toolkit.support.certificates import trusting
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.files import make_directory, open_log
from toolkit.support.mirror import debian_mirror
from toolkit.support.processes import command_line, stream
from toolkit.support.site import load_site
from toolkit.support.staging import staging

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.pins.guard.trials import Imported
    from toolkit.pins.lock.model import Lock
    from toolkit.pins.store import Locks
    from toolkit.recipes.model import Base, Recipe
    from toolkit.support.paths import WorkArea

_SCRIPT = "ctk-try.sh"


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial in which all imports succeeded. Both times are wall time in seconds."""

    imported: tuple[Imported, ...]
    seconds: float
    import_seconds: float
    log: Path


def base_here(recipe: Recipe, locks: Locks, area: WorkArea) -> tuple[Path, str | None]:
    """The image of the recipe's base on this machine, and the digest by which a build brought it.

    Raises MissingOnHost (`base-not-here`) if it is not here.
    """
    base = recipe.base
    if base.bootstrap == Bootstrap.LOCALIMAGE:
        return base.path, None
    digest = base_digest(recipe, locks)
    if digest is not None and (kept := kept_base(digest, area, base)).is_file():
        return kept, digest
    if base.bootstrap == Bootstrap.DEBOOTSTRAP and (made := _made(base, area)) is not None:
        return made, None
    with_base = command_line(["ctk", "try", recipe.name, "--base", "base.sif"])
    if not recipe.rebased:
        bring = command_line(["ctk", "fetch", recipe.name])
        fix = f"{bring} keeps it on this host, then: {command_line(['ctk', 'try', recipe.name])}"
    elif base.bootstrap == Bootstrap.DEBOOTSTRAP:
        bring = f"{command_line(['ctk', 'new', 'plain', '--base', base.name])} && ctk build plain -o base.sif"
        fix = f"{bring} builds an image of it, then: {with_base}"
    else:
        scheme = f"{base.bootstrap}:" if base.is_local else "docker://"
        bring = command_line(["ctk", "build", f"{scheme}{base.pinned_reference}"])
        fix = f"{bring} -o base.sif pulls it, then: {with_base}"
    raise MissingOnHost(f"the base {base.name} is not on this machine", fix=fix, code="base-not-here")


def _made(base: Base, area: WorkArea) -> Path | None:
    """The image that an earlier build made with debootstrap; None if there is none."""
    site = load_site()
    return kept_bootstrapped(base, debian_mirror(site), open_store(area, site))


def try_recipe(recipe: Recipe, lock: Lock, image: Path, context: BuildContext, listener: Listener) -> Tried:
    """Install the lock over `image` in a throwaway layer, and import what a build of the recipe would import.

    Raises as `toolkit.builds.execute.execute` does for what a build would fail of. The log is kept in the work area.
    """
    area, runtime = context.area, context.runtime
    area.create()
    log_path = area.path / "try" / f"{recipe.name}.log"
    make_directory(log_path.parent)
    started = time.monotonic()
    room = RoomWatch(disks(area, None))
    with open_log(log_path) as log, room.watching(), staging(scratch_of(area)) as directory:
        log.truncate(0)
        transcript = Transcript(log, listener)
        upper, temporary = directory / "layer" / "upper", directory / "tmp"
        for path in (upper, directory / "layer" / "work", temporary):
            path.mkdir(parents=True)
        temporary.chmod(0o1777)
        TextFile(upper / _SCRIPT, trial_script(recipe, lock)).run()
        house = Wheelhouse.of(lent_directory(directory), lock, context)
        uv, loan = uv_copy(area), lend(directory, runtime.product, recipe.indexes, house=house)
        with_uv = bool(lock.packages) and has_mount_point(recipe, image)
        for step in (*([uv] if with_uv else []), *loan.files):
            step.run()
        for line in house.fill(listener) if house is not None else ():
            transcript.take(line)
        binds = (*([uv.bind] if with_uv else []), f"{temporary}:/tmp", *loan.binds)
        command = checked(["sh", "-ex", f"/{_SCRIPT}"], str(image), layers_of(image).names)
        argv = runtime.try_out(image, directory / "layer", command, binds)
        lent = {name: read_value(value) for name, value in loan.environment.items()}
        environment = {**without_options(), **area_environment(area), **trusting(), **lent}
        status = stream(argv, transcript.take, env=environment, cwd=directory)
        if status != 0:
            attempt = Attempt(f"trying {recipe.name}", recipe, lock, log_path, area)
            raise explain_failure(attempt, status, transcript.last_lines, room)
    took = seconds_of_imports(transcript.last_lines) or 0.0
    return Tried(successes(transcript.last_lines), time.monotonic() - started, took, log_path)


def require_packages(recipe: Recipe) -> None:
    """Raise WrongInput if the recipe lists no packages."""
    if not recipe.packages:
        raise WrongInput(f"the recipe {recipe.name} lists no packages: nothing to try", code="nothing-to-try")
