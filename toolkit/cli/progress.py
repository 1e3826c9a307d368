"""The steps of a build while they run, and how long each took: live on a terminal, plain lines through a pipe."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.context import Listener
from toolkit.cli.output import console, one_line, say
from toolkit.support.files import format_size
from toolkit.support.quantities import format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rich.console import RenderableType

_REFRESHES_PER_SECOND = 8
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "-\\|/"
_PERCENT = 100
_SHORTEST = 0.05  # seconds: what is shorter would be shown as 0.0 s
_FIRST_REMINDER, _NEXT_REMINDER = 5.0, 20.0  # seconds
_BETWEEN_LOOKS = 1.0
# What is not shown need not be made printable: a script can print megabytes without a newline.
_SHOWN_OF_LINE = 4096


@dataclass(frozen=True, slots=True)
class StepTime:
    """A finished step. `seconds` is wall time; `cached`: the store had its result."""

    name: str
    seconds: float
    cached: bool = False

    @property
    def time(self) -> str:
        """The time for people; `cached` where nothing was done."""
        return "cached" if self.cached else format_seconds(self.seconds)

    @property
    def is_worth_a_line(self) -> bool:
        """Whether it took any time that is shown, or saved some."""
        return self.cached or self.seconds >= _SHORTEST


class StepTimes:
    """Measures the steps of a build: each begins when the one before it ends."""

    def __init__(self, ended: Callable[[StepTime], None], now: Callable[[], float] = time.monotonic) -> None:
        self._ended, self._now = ended, now
        self._current: str | None = None
        self._started = 0.0
        self._finished: list[StepTime] = []

    @property
    def finished(self) -> tuple[StepTime, ...]:
        """The finished steps, in order."""
        return tuple(self._finished)

    def begin(self, name: str) -> bool:
        """Begin a step. False if it runs already, such as the installer that runs several times."""
        if name == self._current:
            return False
        self.end()
        self._current, self._started = name, self._now()
        return True

    def done(self, name: str, seconds: float, *, cached: bool) -> None:
        """Note a step whose time is known; it ends the current one, which it may be itself."""
        if name == self._current:
            self._current = None
        self.end()
        self._note(StepTime(name, seconds, cached))

    def failed(self) -> StepTime | None:
        """The current step, which ends without a result; it is not among the finished ones."""
        if self._current is None:
            return None
        name, self._current = self._current, None
        return StepTime(name, self._now() - self._started)

    def end(self) -> None:
        """End the current step, if there is one."""
        if self._current is not None:
            name, self._current = self._current, None
            self._note(StepTime(name, self._now() - self._started))

    def _note(self, step: StepTime) -> None:
        self._finished.append(step)
        self._ended(step)


class Reminders:
    """When a line about a running step is due where nothing is live: soon, then rarely, and never the same again."""

    def __init__(self) -> None:
        self._due, self._last = 0.0, ""

    def begin(self, now: float) -> None:
        """A step begins at `now` (seconds)."""
        self._due, self._last = now + _FIRST_REMINDER, ""

    def is_due(self, now: float, text: str) -> bool:
        """Whether `text`, the state of the step, is to be printed at `now`; it is then taken as printed."""
        if now < self._due or text == self._last:
            return False
        self._due, self._last = now + _NEXT_REMINDER, text
        return True


class Display:
    """Shows a build titled `title` on standard error: each step when it ends, with its time.

    The current step is a live line on a terminal. Elsewhere there is a line about it if it takes long. `verbose` shows
    all that the programs of the build print instead; the report has the steps.
    """

    def __init__(self, title: str, *, verbose: bool, now: Callable[[], float] = time.monotonic) -> None:
        self._title, self._verbose, self._now = title, verbose, now
        self._is_live = sys.stderr.isatty()
        self._started = now()
        self._step = self._part = self._line = ""
        self._bytes = (0, 0)
        self._times = StepTimes(self._show_end, now)
        self._reminders = Reminders()

    @property
    def listener(self) -> Listener:
        """What a build tells its events to."""
        return Listener(
            self._begin,
            self._take,
            self._progress,
            self._times.done,
            on_part=self._begin_part,
            on_note=self._note,
            on_step_failed=self._show_failed,
        )

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """The finished steps, in order."""
        return self._times.finished

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the build in this block. What is printed meanwhile appears above its live lines."""
        with self._live() if self._is_live else self._reminding():
            try:
                yield
            except Exception:
                self._show_failed()
                raise
            self._times.end()

    def _live(self) -> AbstractContextManager[object]:
        from rich.live import Live

        return Live(
            console=console(stderr=True),
            get_renderable=self._render,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
        )

    @contextmanager
    def _reminding(self) -> Iterator[None]:
        ended = threading.Event()

        def remind() -> None:
            while not ended.wait(_BETWEEN_LOOKS):
                self._remind()

        reminder = threading.Thread(target=remind, daemon=True)
        if not self._verbose:
            reminder.start()
        try:
            yield
        finally:
            ended.set()
            if reminder.is_alive():
                reminder.join(_BETWEEN_LOOKS)

    def _remind(self) -> None:
        """Print the state of the current step, if that is due."""
        if self._step and self._reminders.is_due(self._now(), text := self._state()):
            say(f"ctk: {text}", stderr=True)

    def _state(self) -> str:
        text, share = _joined(self._step, self._part), share_done(*self._bytes)
        return f"{text}: {share}" if share else f"{text} ..."

    def _doing(self, *words: str) -> str:
        return f"{self._title}: {_joined(*words)}" if self._step else self._title

    def _begin(self, step: str) -> None:
        if not self._times.begin(step):
            return
        self._bytes, self._line, self._step, self._part = (0, 0), "", step, ""
        self._reminders.begin(self._now())

    def _begin_part(self, part: str) -> None:
        self._bytes, self._line, self._part = (0, 0), "", part

    def _note(self, text: str) -> None:
        say(f"ctk: {text}", stderr=True)

    def _take(self, line: str) -> None:
        self._line = line
        if self._verbose:
            say(line, stderr=True)

    def _progress(self, done: int, total: int) -> None:
        self._bytes = (done, total)

    def _show_end(self, step: StepTime) -> None:
        self._step = ""
        if not step.is_worth_a_line or self._verbose:
            return
        if self._is_live:
            mark = "✓" if _is_unicode() else "+"
            say(f"{mark} {step.name}  {step.time}", style="dim", stderr=True)
        else:
            say(f"ctk: {step.name} ({step.time})", stderr=True)

    def _show_failed(self) -> None:
        step, self._step = self._times.failed(), ""
        if step is None or self._verbose:
            return
        if self._is_live:
            mark = "✗" if _is_unicode() else "x"
            say(f"{mark} {step.name}  failed after {step.time}", style="dim", stderr=True)
        else:
            say(f"ctk: {step.name} (failed after {step.time})", stderr=True)

    def _render(self) -> RenderableType:
        from rich.text import Text

        width = console(stderr=True).width - 1  # the last column makes some terminals wrap
        frames = _FRAMES if _is_unicode() else _ASCII_FRAMES
        elapsed = self._now() - self._started
        share, clock = share_done(*self._bytes) if self._step else "", f"{elapsed // 60:.0f}:{elapsed % 60:02.0f}"
        end = "  ".join(["", *([share] if share else []), clock])
        frame, room = frames[int(elapsed * _REFRESHES_PER_SECOND) % len(frames)], max(width - len(end), 1)
        text = Text(f"{frame} {one_line(self._doing(self._step, self._part))}")
        if self._part and text.cell_len > room:  # the part says more than the step does
            text = Text(f"{frame} {one_line(self._doing(self._part))}")
        text.truncate(room, overflow="ellipsis")
        text.append(end)
        if self._step and self._line and not self._verbose:
            line = Text(f"  | {one_line(self._line[:_SHOWN_OF_LINE])}", style="dim")
            line.truncate(width, overflow="ellipsis")
            text = Text("\n").join([text, line])
        text.no_wrap, text.overflow = True, "crop"
        return text


def _joined(*words: str) -> str:
    return ", ".join(filter(None, words))


def share_done(done: int, total: int) -> str:
    """How much of a step is done, such as "45 %, 1.1 GiB of 2.4 GiB"; a `total` of 100 or less is no size in bytes.

    Without a total there is no percentage: "1.1 GiB so far".
    """
    if total <= 0:
        return f"{format_size(done)} so far" if done > 0 else ""
    percent = f"{min(max(done, 0), total) * 100 // total} %"
    return percent if total <= _PERCENT else f"{percent}, {format_size(done)} of {format_size(total)}"


def _is_unicode() -> bool:
    return console(stderr=True).encoding.lower().startswith("utf")
