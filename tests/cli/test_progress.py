"""The live lines of a build, the plain ones, and the times of its steps."""

from __future__ import annotations

import io
import sys
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from toolkit.cli import output
from toolkit.cli.progress import Display, StepTime, StepTimes, share_done

if TYPE_CHECKING:
    from collections.abc import Iterator


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def captured(stream: io.StringIO) -> Iterator[io.StringIO]:
    """Standard error as `stream`, 80 columns wide if it is a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        patch.setenv("COLUMNS", "80")
        patch.setenv("TERM", "xterm")
        output.console.cache_clear()
        yield stream
    output.console.cache_clear()


def test_step_lasts_until_the_next_one_begins() -> None:
    clock, ended = Clock(), list[StepTime]()
    times = StepTimes(ended.append, clock)
    assert times.begin("installing")
    clock.seconds = 2
    assert not times.begin("installing")
    clock.seconds = 5
    assert times.begin("packing")
    clock.seconds = 6
    times.end()
    times.end()
    assert ended == list(times.finished) == [StepTime("installing", 5), StepTime("packing", 1)]


def test_step_of_the_store_does_not_end_the_current_one() -> None:
    clock = Clock()
    times = StepTimes(lambda _step: None, clock)
    times.begin("adding layers")
    times.done("packages", 0, cached=True)
    clock.seconds = 3
    times.end()
    assert times.finished == (StepTime("packages", 0, cached=True), StepTime("adding layers", 3))


def test_step_that_says_its_time_ends_the_current_one() -> None:
    times = StepTimes(lambda _step: None, Clock())
    times.begin("packages")
    times.done("packages", 7, cached=False)
    times.end()
    assert times.finished == (StepTime("packages", 7),)
    assert [step.time for step in (*times.finished, StepTime("apt", 0, cached=True))] == ["7.0 s", "cached"]


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [(0, 0, ""), (2048, 0, "2 KiB"), (45, 100, "45 %"), (512, 1024, "50 %, 512 B of 1 KiB"), (9, 4, "100 %")],
)
def test_share_is_shown_with_sizes_where_they_are_known(done: int, total: int, shown: str) -> None:
    assert share_done(done, total).replace(".0 ", " ").replace("bytes", "B") == shown


def test_through_a_pipe_steps_are_plain_lines() -> None:
    with captured(io.StringIO()) as errors:
        display = Display("Building x.sif", verbose=False)
        with display.shown():
            display.listener.on_step("installing")
            display.listener.on_step("installing")
            display.listener.on_line("a line of a program")
            display.listener.on_progress(1, 2)
            display.listener.on_step_done("files", 0, cached=True)
            display.listener.on_step("importing")
        assert errors.getvalue() == "ctk: installing\nctk: files: cached\nctk: importing\n"
        assert [step.name for step in display.steps] == ["files", "installing", "importing"]


def test_verbose_prints_every_line_and_no_step_twice() -> None:
    with captured(io.StringIO()) as errors:
        display = Display("Building x.sif", verbose=True)
        with display.shown():
            display.listener.on_step("installing")
            display.listener.on_line("ctk: installing")
            display.listener.on_line("a\x1b[2Jb")
        assert errors.getvalue() == "ctk: installing\na\\x1b[2Jb\n"


def test_on_a_terminal_each_step_ends_with_its_time() -> None:
    with captured(Terminal()) as terminal:
        clock = Clock()
        display = Display("Building x.sif", verbose=False, now=clock)
        with display.shown():
            display.listener.on_step("installing")
            clock.seconds = 4.25
            display.listener.on_step_done("files", 0, cached=True)
        shown = terminal.getvalue()
        assert "installing  4.2 s" in shown
        assert "files  cached" in shown


HOSTILE = st.text(st.characters() | st.sampled_from("\x1b[2J\r\n\t\x9b\u202e漢"), max_size=300)


@given(HOSTILE, HOSTILE, st.integers(0, 10**12), st.integers(0, 10**12))
def test_live_lines_fit_and_control_nothing(step: str, line: str, done: int, total: int) -> None:
    display = Display("Building x.sif", verbose=False)
    display._begin(step)
    display._take(line)
    display._progress(done, total)
    shown = display._render()
    assert isinstance(shown, Text)
    lines = shown.plain.split("\n")
    assert len(lines) <= 2
    width = output.console(stderr=True).width
    assert all(cell_len(text) < width for text in lines)
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for text in lines for character in text)


def test_very_long_line_is_cut() -> None:
    with captured(Terminal()) as terminal:
        display = Display("Building x.sif", verbose=False)
        with display.shown():
            display.listener.on_step("installing")
            display.listener.on_line("x" * 5_000_000)
            shown = display._render()
        assert isinstance(shown, Text)
        assert len(shown.plain) < 160
        assert "x" * 80 not in terminal.getvalue()
