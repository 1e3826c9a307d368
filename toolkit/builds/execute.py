"""Execute a plan: the image is renamed into place when it is complete, or not at all."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from toolkit.builds.form import FLAT, Choice, Form
from toolkit.builds.layers.make import NotLayered
from toolkit.builds.leftovers import sweep_temporary
from toolkit.builds.room import RoomWatch, check_room, disks
from toolkit.builds.state import BuildState
from toolkit.builds.steps import Workspace, steps_of
from toolkit.builds.transcript import Transcript
from toolkit.inventory.formats.sif_digests import remember_built
from toolkit.runtime.area import scratch_of
from toolkit.store.needs import note_image
from toolkit.support.errors import WrongInput
from toolkit.support.files import held_by_strangers, hold, open_log, open_regular
from toolkit.support.staging import staging

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.record import Record
    from toolkit.builds.request import BuildRequest
    from toolkit.support.findings import Finding


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build. `seconds` is wall time, `size` bytes (0 for a sandbox); `findings` are the audit's, and
    `command-not-in-image` if no job of the recipe could start. `import_seconds` are those of the import step,
    `form` that of the image."""

    output: Path
    log: Path
    seconds: float
    size: int
    record: Record
    findings: tuple[Finding, ...]
    import_seconds: float | None = None
    form: Choice = FLAT


def execute(plan: BuildPlan, context: BuildContext, listener: Listener) -> Built:
    """Build the image.

    Raises CheckFailed if the guard found a difference, a package cannot be imported (`import-failed`), the base changed
    since the build was planned, or the verdict is not the one that the recipe requires; ProgramFailed with the failing
    command, the last lines and the log where the runtime fails; MissingOnHost if there is too little room;
    WrongInput if another build of the same output runs, or this user may not write it. In any case, the earlier
    image is kept until the new one is complete.
    """
    request = plan.request
    context.area.create()
    sweep_temporary()
    check_room(plan.room, request.output, context.area)
    started = time.monotonic()
    room = RoomWatch(disks(context.area, request.output))
    with contextlib.ExitStack() as open_until_done:
        open_until_done.enter_context(room.watching())
        log = open_until_done.enter_context(_only_builder(request))
        beside = open_until_done.enter_context(staging(request.output.parent))
        scratch = open_until_done.enter_context(contextlib.ExitStack())
        workspace = Workspace(beside, scratch.enter_context(staging(scratch_of(context.area))))
        state = BuildState(plan, context, listener, Transcript(log, listener), room, scratch.close)
        try:
            _run(state, workspace)
        except NotLayered as error:
            if request.form is Form.LAYERED:
                raise
            state.plan = replace(plan, layers=None, form=Choice(Form.FLAT, error.message))
            listener.note_failed(f"building a flat image: {error.message}")
            check_room(state.plan.room, request.output, context.area)
            again = Workspace(beside / "flat", workspace.scratch / "flat")
            again.beside.mkdir()
            again.scratch.mkdir()
            _run(state, again)
    if state.files_changed():
        text = "a file of [[files]] was changed during the build: the image may have the old content or the new one"
        listener.note(f"{text}; the next `ctk build` makes it again")
    if request.recipe is not None and not request.sandbox:
        used = [*([state.plan.base.image] if state.plan.base.image is not None else []), *state.used]
        note_image(context.store.own, request.output, request.recipe.name, used)
    if not request.sandbox:
        remember_built(request.output, context.locks.cache)
    size = 0 if request.sandbox else request.output.stat().st_size
    seconds = time.monotonic() - started
    return Built(
        request.output, request.log, seconds, size, state.record, state.findings, state.import_seconds, state.plan.form
    )


def _run(state: BuildState, workspace: Workspace) -> None:
    for step in steps_of(state.plan, state.context, workspace):
        step.run(state)


def refuse_second(request: BuildRequest) -> None:
    """Raise WrongInput (`build-in-progress`) if a build of the same output runs, before anything is pulled or locked.

    `execute` decides it: another build may begin meanwhile.
    """
    with contextlib.suppress(OSError), open_regular(request.log) as log:
        _hold(request, log.fileno())


def _hold(request: BuildRequest, log: int) -> None:
    """Lock the log until it is closed. Raises WrongInput (`build-in-progress`)."""
    try:
        hold(log)
    except BlockingIOError:
        if not held_by_strangers(log):
            raise WrongInput(
                f"another ctk build is writing {request.output}",
                fix="Wait for it, or choose another name with -o.",
                code="build-in-progress",
            ) from None


@contextlib.contextmanager
def _only_builder(request: BuildRequest) -> Iterator[TextIO]:
    """Lock the output for this build: two builds would write to one log, and the slower one would win.

    It is the log that is locked. It is next to the output, so that every path to the output leads to it, and it stays
    anyhow. The kernel ends the lock with its holder; a file system without locks has none. Another user who may read
    the log can lock it as well, but does not block a build.
    """
    with open_log(request.log) as log:
        _hold(request, log.fileno())
        log.truncate(0)
        yield log
