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
from toolkit.cli.progress import Display, Reminders, StepTime, StepTimes, share_done

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


def test_step_of_the_store_follows_the_one_before_it() -> None:
    clock = Clock()
    times = StepTimes(lambda _step: None, clock)
    times.begin("comparing")
    clock.seconds = 3
    times.done("packages", 0, cached=True)
    clock.seconds = 5
    times.end()
    assert times.finished == (StepTime("comparing", 3), StepTime("packages", 0, cached=True))


def test_failed_step_is_not_among_the_finished_ones() -> None:
    clock = Clock()
    times = StepTimes(lambda _step: None, clock)
    assert times.failed() is None
    times.begin("packing")
    clock.seconds = 2
    assert times.failed() == StepTime("packing", 2)
    times.end()
    assert times.finished == ()


def test_reminders_come_soon_then_rarely_and_only_with_news() -> None:
    reminders = Reminders()
    reminders.begin(100)
    moments = [(104, "a"), (105, "a"), (106, "b"), (124, "b"), (125, "b"), (126, "c"), (145, "c"), (900, "c")]
    assert [(now, text) for now, text in moments if reminders.is_due(now, text)] == [(105, "a"), (125, "b"), (145, "c")]
    reminders.begin(1000)
    assert not reminders.is_due(1004, "d")
    assert reminders.is_due(1005, "c"), "the text of another step"


def test_step_that_says_its_time_ends_the_current_one() -> None:
    times = StepTimes(lambda _step: None, Clock())
    times.begin("packages")
    times.done("packages", 7, cached=False)
    times.end()
    assert times.finished == (StepTime("packages", 7),)
    assert [step.time for step in (*times.finished, StepTime("apt", 0, cached=True))] == ["7.0 s", "cached"]


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [(0, 0, ""), (2048, 0, "2 KiB so far"), (45, 100, "45 %"), (512, 1024, "50 %, 512 B of 1 KiB"), (9, 4, "100 %")],
)
def test_share_is_shown_with_sizes_where_they_are_known(done: int, total: int, shown: str) -> None:
    assert share_done(done, total).replace(".0 ", " ").replace("bytes", "B") == shown


def test_through_a_pipe_steps_are_plain_lines() -> None:
    with captured(io.StringIO()) as errors:
        clock = Clock()
        display = Display("Building x.sif", verbose=False, now=clock)
        with display.shown():
            display.listener.on_step("installing")
            display.listener.on_step("installing")
            display.listener.on_line("a line of a program")
            display.listener.on_progress(1, 2)
            clock.seconds = 75
            display.listener.on_step_done("files", 0, cached=True)
            display.listener.on_step("too short to be shown")
            display.listener.note("the index is slow")
            display.listener.on_step("importing")
            clock.seconds = 76
        shown = errors.getvalue()
        assert shown == (
            "ctk: installing (1 m 15 s)\nctk: files (cached)\nctk: the index is slow\nctk: importing (1.0 s)\n"
        )
        assert [step.name for step in display.steps] == ["installing", "files", "too short to be shown", "importing"]


def test_a_step_that_is_begun_again_did_not_end() -> None:
    with captured(io.StringIO()) as errors:
        clock = Clock()
        display = Display("Building x.sif", verbose=False, now=clock)
        with display.shown():
            display.listener.on_step("files")
            clock.seconds = 2
            display.listener.note_failed("building a flat image: no layers here")
            display.listener.on_step("running %post")
            clock.seconds = 3
        assert errors.getvalue() == (
            "ctk: files (failed after 2.0 s)\nctk: building a flat image: no layers here\nctk: running %post (1.0 s)\n"
        )
        assert [step.name for step in display.steps] == ["running %post"]


def test_through_a_pipe_a_long_step_tells_its_percentage_without_a_flood() -> None:
    with captured(io.StringIO()) as errors:
        clock = Clock()
        display = Display("Building x.sif", verbose=False, now=clock)
        display.listener.on_step("packages")
        display.listener.on_part("packing")
        for second in range(100):
            clock.seconds = second
            display.listener.on_progress(second, 100)
            display._remind()
        display.listener.on_part("reading back")
        display._remind()
        clock.seconds = 130
        display._remind()
        shares = [f"ctk: packages, packing: {percent} %\n" for percent in (5, 25, 45, 65, 85)]
        assert errors.getvalue() == "".join([*shares, "ctk: packages, reading back ...\n"])


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_step_that_fails_is_named_with_its_time(stream: type[io.StringIO]) -> None:
    with captured(stream()) as errors:
        clock = Clock()
        display = Display("Building x.sif", verbose=False, now=clock)

        def install() -> None:
            with display.shown():
                display.listener.on_step("installing")
                clock.seconds = 4
                raise OSError("disk")

        with pytest.raises(OSError, match="disk"):
            install()
        shown = errors.getvalue()
        if stream is Terminal:
            assert "installing  failed after 4.0 s" in shown
        else:
            assert shown == "ctk: installing (failed after 4.0 s)\n"
        assert display.steps == ()


def test_verbose_prints_every_line_and_no_step() -> None:
    with captured(io.StringIO()) as errors:
        display = Display("Building x.sif", verbose=True)
        with display.shown():
            display.listener.on_step("installing")
            display.listener.on_line("ctk: installing")
            display.listener.on_line("a\x1b[2Jb")
            display.listener.on_step_done("files", 0, cached=True)
        assert errors.getvalue() == "ctk: installing\na\\x1b[2Jb\n"


def test_on_a_terminal_each_step_ends_with_its_time() -> None:
    with captured(Terminal()) as terminal:
        clock = Clock()
        display = Display("Building x.sif", verbose=False, now=clock)
        with display.shown():
            display.listener.on_step("installing")
            display.listener.on_part("packing")
            display.listener.on_progress(45, 100)
            assert "Building x.sif: installing, packing  45 %" in str(display._render())
            display.listener.on_step(f"merging the layers of {'long' * 9}.sif")
            display.listener.on_part("unpacking layer 1 of 2")
            assert "Building x.sif: unpacking layer 1 of 2  " in str(display._render()), "what does not fit is left out"
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
    display._begin_part(line)
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
