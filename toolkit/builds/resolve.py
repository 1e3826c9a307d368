"""From a request to a plan: pull the base, find or create the lock, write the definition with its guard."""

from __future__ import annotations

import contextlib
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.bases import has_mount_point, present_base, present_digest, refuse_reserved, registry_base
from toolkit.builds.context import Listener
from toolkit.builds.form import FLAT, Form, choose_form, layers_problem
from toolkit.builds.inputs import inputs_of
from toolkit.builds.layers.merge import refuse_layered, require_layers
from toolkit.builds.outdated import made_from
from toolkit.builds.permission import check_permission
from toolkit.builds.plan import BuildPlan, OwnSource, local_room
from toolkit.builds.provenance import recorded_base, recorded_recipe, tools
from toolkit.builds.record import Record, Tools, read_record
from toolkit.builds.room import NOTHING, Room, check_exec, check_room
from toolkit.builds.target import TargetKind, bases_of_definition
from toolkit.definitions.definition import define, define_copy
from toolkit.definitions.labels import has_labels_of_ctk
from toolkit.definitions.layered import layer_steps
from toolkit.gpu.targets import check_target, judge_packages, judge_target
from toolkit.inventory.formats.layers import layer_names
from toolkit.inventory.formats.sif_digests import require_undamaged
from toolkit.pins.bases.before_pull import lent_login, require_architecture
from toolkit.pins.bases.steady import PresentBase, unchanged
from toolkit.pins.lock.lockfile import dump_locks
from toolkit.pins.store import locked_base
from toolkit.recipes.model import Base, Bootstrap
from toolkit.support.errors import MissingOnHost, ProgramFailed, WrongInput
from toolkit.support.namespace import owner_problem
from toolkit.support.ownership import is_trusted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.builds.context import BuildContext
    from toolkit.builds.form import Choice
    from toolkit.builds.request import BuildRequest
    from toolkit.definitions.definition import Definition
    from toolkit.definitions.layered import LayeredSteps
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Recipe

_SILENT = Listener()


def resolve(
    request: BuildRequest, context: BuildContext, listener: Listener = _SILENT, *, layers: bool = False
) -> BuildPlan:
    """The plan of a build: complete, whatever was asked for.

    A preview pulls nothing, and writes nothing but the caches of the work area. Its image is flat unless `layers` asks
    for the form that the build would choose; the work area exists then. Without it this raises WrongInput where
    this user may not write the output, MissingOnHost if there is too little room, and ProgramFailed where the base
    cannot be pulled. In both cases it raises what `Locks.find` raises.
    """
    if not context.preview:
        check_permission(request)
        context.area.create()
        check_room(_first_room(request), request.output, context.area)
        if request.target.kind is not TargetKind.IMAGE:
            check_exec(context.area)
    if request.recipe is not None:
        return _resolve_recipe(request, request.recipe, context, listener, layers=layers or not context.preview)
    if request.target.kind is TargetKind.IMAGE:
        return _resolve_image(request, context)
    for base in _bases(request):
        refuse_layered(base, request.target.text)
        if not context.preview:
            require_architecture(base)
            if base.bootstrap == Bootstrap.LOCALIMAGE:  # its damage would become part of an image that is whole
                fix = f"Build or copy {base.path} again."
                require_undamaged(base.path, context.locks.cache, fix, listener.on_progress)
    own = OwnSource(Path(request.target.text).absolute())
    record = Record(request.target.identity, tools=Tools(runtime=context.runtime.version_text))
    if request.base is None:
        return BuildPlan(request, own, record)
    start, present = registry_base(request, request.base, context, listener)
    return BuildPlan(request, define_copy(start), record, present, start=start, login=_login(start, context))


def _first_room(request: BuildRequest) -> Room:
    """What a build needs in any case: a layered one does not unpack its base; one of a registry is looked at later."""
    bootstrap = request.base.bootstrap if request.base is not None else None
    may_be_layered = request.recipe is not None and request.form is not Form.FLAT and not request.sandbox
    if bootstrap == Bootstrap.DOCKER or (bootstrap == Bootstrap.LOCALIMAGE and may_be_layered):
        return NOTHING
    return local_room(request)


def _resolve_image(request: BuildRequest, context: BuildContext) -> BuildPlan:
    """The plan of a layered image's flat form. It remembers what the layered one does."""
    if context.preview:
        raise WrongInput("--dry-run does not apply to an image whose layers are merged", fix="Omit --dry-run.")
    source = Path(request.target.text).absolute()
    require_undamaged(source, context.locks.cache, f"Build or copy {source} again.")
    require_layers(source)
    record = read_record(source) or Record(request.target.identity, tools=Tools(runtime=context.runtime.version_text))
    return BuildPlan(request, OwnSource(source), replace(record, inputs={}, layers=()), start=request.base)


def _bases(request: BuildRequest) -> Iterator[Base]:
    """What an image that is no recipe's starts from. The runtime would write this host's architecture into it."""
    if request.base is not None:
        yield request.base
    elif request.target.kind is TargetKind.DEFINITION:
        yield from bases_of_definition(Path(request.target.text).read_text(encoding="utf-8", errors="replace"))
    elif request.target.kind is TargetKind.SANDBOX:
        yield Base(request.target.text, Bootstrap.LOCALIMAGE, str(Path(request.target.text).absolute()))


def _resolve_recipe(
    request: BuildRequest, recipe: Recipe, context: BuildContext, listener: Listener, *, layers: bool
) -> BuildPlan:
    locks, base = context.locks, PresentBase(state=request.base_state)
    check_target(recipe)
    judge_target(recipe, locks.bases.values())
    locks.require(recipe)
    with unchanged(request.base_state):
        if recipe.needs_guard or layers:
            base = present_base(request, recipe, context, listener)
        if recipe.needs_guard:
            listener.on_step("choosing the versions of the packages" if recipe.packages else "reading the base")
        elif not context.preview and not context.offline:
            require_architecture(locks.pinned(recipe, base.digest).base)
        found = locks.find(recipe, base)
        lock = found.lock if found else None
        judge_packages(recipe, lock.versions if lock else {})
        start = _start(recipe, lock, context, base.digest)
        definition = _define(recipe, lock, context, start)
        if base.image is None and recipe.base.bootstrap == Bootstrap.LOCALIMAGE:
            base = replace(base, image=recipe.base.path)
        refuse_reserved(recipe, lock, base.image)
        form = _form(request, base.image, context) if layers else FLAT
        inputs = {} if context.preview else inputs_of(request, definition, start, context)
        local = None if context.preview else locks.local_digest(recipe)
        lends_uv = lock is not None and bool(lock.packages) and has_mount_point(recipe, base.image)
    return BuildPlan(
        request,
        definition,
        Record(
            request.target.identity,
            recorded_base(recipe, start, local, lock, locks.bases),
            inputs=inputs,
            made_from=made_from(recipe, lock, other_base=recipe.rebased),
            recipe=recorded_recipe(recipe, start, lock, locks.bases),
            lock=dump_locks(lock) if lock else None,
            tools=tools(context.runtime.version_text, lock, uv=lends_uv),
        ),
        base,
        found,
        lends_uv=lends_uv,
        start=start,
        login=_login(start, context),
        layers=_layers(recipe, lock, start) if form.form is Form.LAYERED else None,
        form=form,
        files=request.files,
    )


def unchanged_record(request: BuildRequest, context: BuildContext) -> Record | None:
    """The record of the image at the output if a build would produce the same one; else None.

    Nothing is pulled, resolved or written for it; a registry is asked only what a tag names of which no lock has the
    digest. A sandbox is always built: its files can be changed at any time, and ctk would not notice. So is what
    another user put there: anybody can write a record.
    """
    recipe, output = request.recipe, request.output
    if recipe is None or request.sandbox or request.force or not output.is_file():
        return None
    status = output.stat()
    if not is_trusted(status.st_uid) or status.st_mode & stat.S_IWOTH:
        return None
    record = read_record(output)
    if record is None or not record.inputs or record.target != request.target.identity:
        return None
    lock = context.locks.current(recipe) if recipe.needs_guard else None
    if lock is None and recipe.packages:
        return None
    start = _start(recipe, lock, context, None if lock is not None else _digest_now(recipe, context))
    inputs = inputs_of(request, _define(recipe, lock, context, start), start, context)
    # What was made with a network serves offline, too; what a script made without one may be less.
    same = inputs == record.inputs or (context.offline and inputs == {**record.inputs, "network": "none"})
    return record if same and _has_form(request, record, context) else None


def _digest_now(recipe: Recipe, context: BuildContext) -> str | None:
    """What the tag of the base names; None if the registry does not say it: the build will say why."""
    try:
        return present_digest(recipe, context, None)
    except ProgramFailed:
        return None


def _has_form(request: BuildRequest, record: Record, context: BuildContext) -> bool:
    """Whether the image has the form that was asked for, and all its layers; where layers do not work, that is none."""
    if record.layers and not set(record.layers) <= set(layer_names(request.output)):
        return False
    if request.form is not None:
        return (request.form is Form.LAYERED) == bool(record.layers)
    if not record.layers:
        return True
    with contextlib.suppress(MissingOnHost):  # an earlier trial may have answered
        context.area.create()
    return layers_problem(context.runtime, context.site, context.area) is None


def _login(base: Base | None, context: BuildContext) -> Path | None:
    return lent_login(base) if base is not None and not context.preview else None


def _start(recipe: Recipe, lock: Lock | None, context: BuildContext, digest: str | None = None) -> Base:
    """The base as the definition names it: with the digest by which it was pulled or locked, if there is one."""
    return locked_base(recipe, lock) if lock is not None else context.locks.pinned(recipe, digest).base


def _define(recipe: Recipe, lock: Lock | None, context: BuildContext, start: Base) -> Definition:
    relabel = has_labels_of_ctk(recipe.base)
    return define(replace(recipe, base=start), lock=lock, mirror=context.mirror, relabel=relabel)


def _layers(recipe: Recipe, lock: Lock | None, start: Base) -> LayeredSteps:
    return layer_steps(replace(recipe, base=start), lock, relabel=has_labels_of_ctk(recipe.base))


def _form(request: BuildRequest, base: Path | None, context: BuildContext) -> Choice:
    """The form of the image. A sandbox has no layers."""
    if request.sandbox:
        return FLAT
    owners = owner_problem()
    return choose_form(request.form, base, runtime=context.runtime, site=context.site, area=context.area, owners=owners)
