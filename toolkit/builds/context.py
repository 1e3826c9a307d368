"""The tools and listeners of a build: the same for each request of one command."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from toolkit.store.store import open_store
from toolkit.support.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.pins.store import Locks
    from toolkit.runtime.engine import Runtime
    from toolkit.store.store import Store
    from toolkit.support.paths import WorkArea


def _nothing(_text: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The runtime, the work area, the locks and the site's settings for a command.

    `mirror` is the Debian archive for a base that debootstrap makes, None if not known. With `preview` nothing is
    pulled or checked on this host; the result is only printed. With `offline` no server is asked, and the scripts of
    a build have no network. `note` is told what of the stores is not used, and why.
    """

    runtime: Runtime
    area: WorkArea
    locks: Locks
    mirror: str | None = None
    preview: bool = False
    site: Site = field(default_factory=Site)
    offline: bool = False
    note: Callable[[str], None] = field(default=_nothing, compare=False, repr=False)

    @property
    def store(self) -> Store:
        """This user's store, and the shared ones."""
        return open_store(self.area, self.site, self.note)


def _no_bytes(_done: int, _total: int) -> None:
    pass


def _no_step_done(_name: str, _seconds: float, *, cached: bool) -> None:
    pass


def _no_step_failed() -> None:
    pass


class StepDone(Protocol):
    """Called at the end of a step: its name, its time in seconds, and whether the store already had its result."""

    def __call__(self, name: str, seconds: float, /, *, cached: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Listener:
    """Receives each step that begins and ends, and each line that a program of the build prints.

    `on_progress` gets the bytes of a step that are done, and those of all of it: 0 if that is not known, 100 if the
    bytes are percent. `on_part` gets what the current step does now, `on_note` what happened that is no step; without
    it, a note is a step. `on_step_failed` is called if the current step ends without a result, and the build goes on.
    """

    on_step: Callable[[str], None] = _nothing
    on_line: Callable[[str], None] = _nothing
    on_progress: Callable[[int, int], None] = _no_bytes
    on_step_done: StepDone = _no_step_done
    on_part: Callable[[str], None] = _nothing
    on_note: Callable[[str], None] | None = None
    on_step_failed: Callable[[], None] = _no_step_failed

    def note_failed(self, text: str) -> None:
        """Tell why the current step ended without a result; it is begun again, or another one replaces it."""
        self.on_step_failed()
        self.note(text)

    def note(self, text: str) -> None:
        """Tell what happened."""
        (self.on_note or self.on_step)(text)
