"""The state of a running build, shared by its steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.builds.failure import Attempt, explain_failure
from toolkit.builds.output import LOG_MARK
from toolkit.builds.plan import OwnSource
from toolkit.support.content import state_of_copied
from toolkit.support.errors import CtkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.record import Record
    from toolkit.builds.room import RoomWatch
    from toolkit.builds.transcript import Transcript
    from toolkit.support.findings import Finding, Verdict


@dataclass(slots=True)
class BuildState:
    """The plan with its surroundings; below these, what is known once the steps have run.

    `findings` are the audit's, and `command-not-in-image` if no job of the recipe could start. `verdict` is None
    before the audit, and `sbom` empty; `import_seconds` is None where there was no import step. `layers` are the names
    of a layered image's, `packer` is the version of mksquashfs that packed the upper ones. `used` are the files of the
    store that the image was made with, besides its base; `digests` are those of its partitions that are known.
    """

    plan: BuildPlan
    context: BuildContext
    listener: Listener
    transcript: Transcript
    room: RoomWatch
    remove_scratch: Callable[[], None]
    import_seconds: float | None = None
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    sbom: str = ""
    layers: tuple[str, ...] = ()
    packer: str | None = None
    used: tuple[Path, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    _waiting: list[str] | None = field(default_factory=list)  # lines for a log that has not begun

    def begin_log(self, command: str) -> None:
        """Begin the log: what is built and how, with the definition."""
        source = self.plan.source
        definition = () if isinstance(source, OwnSource) else source.text.splitlines()
        head = (f"{LOG_MARK}: ctk {__version__}, {self.plan.record.target}", f"# {command}")
        self.transcript.begin(*head, *(f"# | {line}" for line in definition))
        waiting, self._waiting = self._waiting or [], None
        for line in waiting:
            self.transcript.take(line)

    def note(self, line: str) -> None:
        """Write a line into the log, after its beginning: what begins in another way is no log of ctk's."""
        if self._waiting is None:
            self.transcript.take(line)
        else:
            self._waiting.append(line)

    def failure(self, status: int) -> CtkError:
        """The error for a program of the build that ended with `status`, out of the last lines of the log."""
        plan, request = self.plan, self.plan.request
        lock = plan.locked.lock if plan.locked else None
        what = f"building {request.target.text}"
        attempt = Attempt(what, request.recipe, lock, request.log, self.context.area, plan.start)
        return explain_failure(attempt, status, self.transcript.last_lines, self.room)

    @property
    def record(self) -> Record:
        """The image's record, with the audit result, and without inputs if a copied file changed since they were read:
        whether the image has its old content is not known.
        """
        codes = tuple(sorted({finding.code for finding in self.findings}))
        tools = replace(self.plan.record.tools, mksquashfs=self.packer)
        inputs = {} if self.files_changed() else self.plan.record.inputs
        return replace(
            self.plan.record, verdict=self.verdict, findings=codes, layers=self.layers, tools=tools, inputs=inputs
        )

    def files_changed(self) -> bool:
        """Whether a file of the recipe was written to since the build was planned, even if that was undone."""
        recipe = self.plan.request.recipe
        if recipe is None or not self.plan.files:
            return False
        try:
            return state_of_copied(copy.source for copy in recipe.files) != self.plan.files
        except CtkError:
            return True
