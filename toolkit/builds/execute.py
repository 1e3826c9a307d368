"""Carrying out a plan: the image appears by rename when all is done, or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from toolkit import __version__
from toolkit.builds.failure import Attempt, explain_failure
from toolkit.builds.lending import lend
from toolkit.builds.permission import check_permission
from toolkit.builds.plan import LOG_MARK, BuildPlan, check_output
from toolkit.builds.progress import step_of
from toolkit.builds.record import OBJECT_NAME, Record, write_beside
from toolkit.builds.room import RoomWatch, cause, check_room, disks
from toolkit.gpu.audit import Audit, audit_image
from toolkit.gpu.facts import this_machine
from toolkit.inventory.programs import missing_program
from toolkit.pins.steady import unchanged
from toolkit.pins.trials import seconds_of_imports
from toolkit.recipes.indexes import credentials
from toolkit.runtime.area import area_environment, scratch_of
from toolkit.support.certificates import trusting
from toolkit.support.errors import AnswerIsNo, WrongInput
from toolkit.support.files import held_by_strangers, open_log
from toolkit.support.processes import run, stream, visible_command
from toolkit.support.redaction import redact
from toolkit.support.staging import put_in_place, staging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolkit.recipes.model import Recipe
    from toolkit.runtime.engine import BuildOptions, Runtime
    from toolkit.support.findings import Finding
    from toolkit.support.paths import WorkArea

_KEPT_LINES = 20_000  # a compiler's first error may stand thousands of lines above the last one


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build. `seconds` is wall time, `size` bytes (0 for a sandbox); `findings` are the audit's, and
    `command-not-in-image` where no job of the recipe could start. `import_seconds` are those of the import step."""

    output: Path
    log: Path
    seconds: float
    size: int
    record: Record
    findings: tuple[Finding, ...]
    import_seconds: float | None = None


def execute(
    plan: BuildPlan,
    runtime: Runtime,
    area: WorkArea,
    options: BuildOptions,
    on_step: Callable[[str], None],
    on_line: Callable[[str], None] | None = None,
) -> Built:
    """Build the image. `on_step` hears of each step that begins, `on_line` of each line of the output.

    Raises AnswerIsNo where the guard found a difference, a package cannot be imported (`import-failed`), the base
    changed since the build was planned, or the verdict is not the one that the recipe requires; ProgramFailed with the
    failing command, the last lines and the log where the runtime fails; MissingOnHost where there is too little room;
    WrongInput where another build of the same output runs, or this user may not write it. Whatever happens, the earlier
    image stays until the new one is whole.
    """
    area.create()
    environment = area_environment(area)
    if plan.recipe is not None:
        environment |= lent_credentials(plan.recipe)
    check_room(plan, area)
    started = time.monotonic()
    room = RoomWatch(disks(area, plan.output))
    with room.watching(), _only_builder(plan) as log, staging(plan.output.parent) as folder:
        image = folder / "image"
        source = plan.source
        if plan.definition is not None:
            source = str(folder / f"{plan.target.name}.def")
            Path(source).write_text(plan.definition.text, encoding="utf-8", errors="surrogateescape")
        # What is large is cleaned away before the image appears: little is left to do, or to interrupt, after it.
        with staging(scratch_of(area)) as temporary:
            environment |= dict.fromkeys(("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR", "TMPDIR"), str(temporary))
            loan = lend(temporary, runtime.product)
            environment |= {**trusting(), **loan.environment}
            argv = runtime.build(image, source, options, (*plan.binds, *loan.binds))
            with unchanged(plan.base_state):
                import_seconds = _run_build(plan, argv, environment, area, log, room, on_step, on_line)
        on_step("auditing the image")
        audit = audit_image(image, this_machine())
        _require_verdict(plan, audit)
        findings = (*audit.findings, *_command_findings(plan, image))
        record = replace(plan.record, verdict=audit.verdict.value, findings=_codes(findings))
        if not plan.sandbox:
            _add_record(record, runtime, image, folder, room)
        check_output(plan)  # a build takes minutes: the user, or another one, may have put something there
        check_permission(plan)
        put_in_place(image, plan.output)
        if plan.sandbox:
            write_beside(plan.output, record)
    size = 0 if plan.sandbox else plan.output.stat().st_size
    return Built(plan.output, plan.log, time.monotonic() - started, size, record, findings, import_seconds)


def lent_credentials(recipe: Recipe) -> dict[str, str]:
    """The credentials of the recipe's indexes for the time of `%post`, which sees only what has these prefixes."""
    prefixes = ("APPTAINERENV_", "SINGULARITYENV_")
    return {f"{prefix}{name}": value for name, value in credentials(recipe.indexes).items() for prefix in prefixes}


@contextlib.contextmanager
def _only_builder(plan: BuildPlan) -> Iterator[TextIO]:
    """Hold the output for this build alone: two of them would write one log, and the slower one would win.

    It is the log that is locked. It is next to the output, so that every path to the output leads to it, and it stays
    anyhow. The kernel ends the lock with its holder; a file system without locks has none. Another user who may read
    the log can lock it as well, and holds nobody up.
    """
    with open_log(plan.log) as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not held_by_strangers(log.fileno()):
                raise WrongInput(
                    f"another ctk build is writing {plan.output}",
                    fix="Wait for it, or choose another name with -o.",
                    code="taken",
                ) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK):
                raise
        log.truncate(0)
        yield log


def _command_findings(plan: BuildPlan, image: Path) -> tuple[Finding, ...]:
    """Whether a job of the recipe could start: the image is as it should be, so the answer does not undo the build."""
    job = plan.recipe.job if plan.recipe else None
    found = missing_program(image, job.command, job.binds) if job else None
    return (found,) if found else ()


def _codes(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(sorted({finding.code for finding in findings}))


def _require_verdict(plan: BuildPlan, audit: Audit) -> None:
    wanted = plan.recipe.verdict if plan.recipe else None
    if wanted is None or audit.verdict.value == wanted:
        return
    reasons = "".join(f"; {finding.code}: {finding.message}" for finding in audit.findings)
    raise AnswerIsNo(
        f"the image of {plan.target.text} is {audit.verdict.value}, and its recipe requires {wanted}{reasons}",
        fix="`ctk explain CODE` says what a finding means and how to mend it.",
        code="verdict-not-reached",
    )


def _run_build(
    plan: BuildPlan,
    argv: list[str],
    environment: dict[str, str],
    area: WorkArea,
    log: TextIO,
    room: RoomWatch,
    on_step: Callable[[str], None],
    on_line: Callable[[str], None] | None,
) -> float | None:
    """Run the build, and return how long its import step took; None where it had none."""
    lock = plan.locked.lock if plan.locked else None
    last: deque[str] = deque(maxlen=_KEPT_LINES)
    log.write(f"{LOG_MARK}: ctk {__version__}, {plan.record.target}\n# {visible_command(argv, environment)}\n")
    if plan.definition is not None:
        log.writelines(f"# | {line}\n" for line in plan.definition.text.splitlines())
    log.flush()

    def take_line(line: str) -> None:
        line = redact(line)
        log.write(f"{line}\n")
        log.flush()
        last.append(line)
        if on_line is not None:
            on_line(line)
        step = step_of(line)
        if step is not None:
            on_step(step)

    status = stream(argv, take_line, env=environment)
    if status != 0:
        attempt = Attempt(f"building {plan.target.text}", plan.recipe, lock, plan.log, area)
        raise explain_failure(attempt, status, list(last), room)
    return seconds_of_imports(last)


def _add_record(record: Record, runtime: Runtime, image: Path, folder: Path, room: RoomWatch) -> None:
    document = folder / OBJECT_NAME
    document.write_text(record.as_text(), encoding="utf-8")
    done = run(runtime.add_json(image, document))
    complaint = None if done.ok else cause(done.stderr.splitlines(), room)
    what = "recording what the image was made from"
    done.require(f"{what} ({complaint.meaning})" if complaint else what, fix=complaint.fix if complaint else None)
