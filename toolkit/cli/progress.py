"""The steps of a build while they run, and how long each took: live on a terminal, plain lines through a pipe."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.builds.context import Listener
from toolkit.cli.output import console, one_line, say
from toolkit.support.files import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType

_REFRESHES_PER_SECOND = 8
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES = "-\\|/"
_PERCENT = 100
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
        return "cached" if self.cached else f"{self.seconds:.1f} s"


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
        """Note a step whose time is known; it ends the current one unless the store had the result of another."""
        if not cached or name == self._current:
            self._current = None
        self._note(StepTime(name, seconds, cached))

    def end(self) -> None:
        """End the current step, if there is one."""
        if self._current is not None:
            name, self._current = self._current, None
            self._note(StepTime(name, self._now() - self._started))

    def _note(self, step: StepTime) -> None:
        self._finished.append(step)
        self._ended(step)


class Display:
    """Shows a build titled `title` on standard error. `verbose`: with all that its programs print."""

    def __init__(self, title: str, *, verbose: bool, now: Callable[[], float] = time.monotonic) -> None:
        self._title, self._verbose, self._now = title, verbose, now
        self._is_live = sys.stderr.isatty()
        self._started = now()
        self._step = self._line = ""
        self._bytes = (0, 0)
        self._times = StepTimes(self._show_end, now)

    @property
    def listener(self) -> Listener:
        """What a build tells its events to."""
        return Listener(self._begin, self._take, self._progress, self._times.done)

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """The finished steps, in order."""
        return self._times.finished

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the build in this block. What is printed meanwhile appears above its live lines."""
        if not self._is_live:
            yield
            self._times.end()
            return
        from rich.live import Live

        with Live(
            console=console(stderr=True),
            get_renderable=self._render,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
        ):
            yield
            self._times.end()

    def _begin(self, step: str) -> None:
        if not self._times.begin(step):
            return
        self._bytes, self._line, self._step = (0, 0), "", step
        if not self._is_live and not self._verbose:
            say(f"ctk: {step}", stderr=True)

    def _take(self, line: str) -> None:
        self._line = line
        if self._verbose:
            say(line, stderr=True)

    def _progress(self, done: int, total: int) -> None:
        self._bytes = (done, total)

    def _show_end(self, step: StepTime) -> None:
        self._bytes, self._line = (0, 0), ""
        if self._is_live:
            mark = "✓" if _is_unicode() else "+"
            say(f"{mark} {step.name}  {step.time}", style="dim", stderr=True)
        elif step.cached and not self._verbose:
            say(f"ctk: {step.name}: cached", stderr=True)

    def _render(self) -> RenderableType:
        from rich.text import Text

        width = console(stderr=True).width - 1  # the last column makes some terminals wrap
        frames = _FRAMES if _is_unicode() else _ASCII_FRAMES
        elapsed = self._now() - self._started
        share, clock = share_done(*self._bytes), f"{elapsed // 60:.0f}:{elapsed % 60:02.0f}"
        end = "  ".join(["", *([share] if share else []), clock])
        step = f": {self._step}" if self._step else ""
        text = Text(f"{frames[int(elapsed * _REFRESHES_PER_SECOND) % len(frames)]} {one_line(self._title + step)}")
        text.truncate(max(width - len(end), 1), overflow="ellipsis")
        text.append(end)
        if self._line and not self._verbose:
            line = Text(f"  | {one_line(self._line[:_SHOWN_OF_LINE])}", style="dim")
            line.truncate(width, overflow="ellipsis")
            text = Text("\n").join([text, line])
        text.no_wrap, text.overflow = True, "crop"
        return text


def share_done(done: int, total: int) -> str:
    """How much of a step is done, such as "45 %, 1.1 GiB of 2.4 GiB"; a `total` of 100 or less is no size in bytes."""
    if total <= 0:
        return format_size(done) if done > 0 else ""
    percent = f"{min(max(done, 0), total) * 100 // total} %"
    return percent if total <= _PERCENT else f"{percent}, {format_size(done)} of {format_size(total)}"


def _is_unicode() -> bool:
    return console(stderr=True).encoding.lower().startswith("utf")
