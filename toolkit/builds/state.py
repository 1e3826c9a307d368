"""The state of a running build, shared by its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
    before the audit, and `sbom` empty; `import_seconds` is None where there was no import step.
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

    @property
    def record(self) -> Record:
        """The image's record, with the audit result."""
        codes = tuple(sorted({finding.code for finding in self.findings}))
        return replace(self.plan.record, verdict=self.verdict, findings=codes)
