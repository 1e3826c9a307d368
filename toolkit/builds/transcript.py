"""The output of a build's programs: to the log, to the listener, and the last lines for an explanation."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TextIO

from toolkit.builds.progress import step_of
from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.builds.context import Listener

_KEPT_LINES = 20_000  # a compiler's first error may stand thousands of lines above the last one


class Transcript:
    """A log that is being written. No credential reaches it."""

    def __init__(self, log: TextIO, listener: Listener) -> None:
        self._log, self._listener = log, listener
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)

    @property
    def last_lines(self) -> list[str]:
        """The last lines that a program printed."""
        return list(self._last)

    def begin(self, *lines: str) -> None:
        """Write lines of ctk's own, which may quote the definition."""
        self._write(*map(redact, lines))

    def take(self, line: str) -> None:
        """Take a line that a program printed. What it begins is a step of the build."""
        self._take(line, self._listener.on_step)

    def take_part(self, line: str) -> None:
        """As `take`; what the line begins is a part of the current step."""
        self._take(line, self._listener.on_part)

    def _take(self, line: str, begin: Callable[[str], None]) -> None:
        line = redact(line)
        self._write(line)
        self._last.append(line)
        self._listener.on_line(line)
        if (step := step_of(line)) is not None:
            begin(step)

    def _write(self, *lines: str) -> None:
        self._log.writelines(f"{line}\n" for line in lines)
        self._log.flush()
