"""The log of a build: whole, without credentials, and told as it comes."""

from __future__ import annotations

import io

from toolkit.builds.context import Listener
from toolkit.builds.transcript import Transcript


def test_lines_of_a_program_reach_log_and_listener_and_begin_steps() -> None:
    log, lines, steps = io.StringIO(), list[str](), list[str]()
    transcript = Transcript(log, Listener(steps.append, lines.append))
    transcript.begin("ctk 0.1.0", "mine")
    transcript.take("INFO:    Starting build...")
    transcript.take("an ordinary line")
    assert log.getvalue() == "ctk 0.1.0\nmine\nINFO:    Starting build...\nan ordinary line\n"
    assert lines == transcript.last_lines == ["INFO:    Starting build...", "an ordinary line"]
    assert steps == ["starting the build"]


def test_what_a_line_begins_may_be_a_part_of_a_step() -> None:
    steps, parts = list[str](), list[str]()
    transcript = Transcript(io.StringIO(), Listener(steps.append, on_part=parts.append))
    transcript.take_part("ctk: running the post script of the recipe")
    assert (steps, parts) == ([], ["running the post script of the recipe"])
    assert transcript.last_lines == ["ctk: running the post script of the recipe"]


def test_a_credential_reaches_neither_log_nor_listener_nor_explanation() -> None:
    log, lines = io.StringIO(), list[str]()
    transcript = Transcript(log, Listener(on_line=lines.append))
    transcript.begin("# | curl https://ann:S3CRET@index.example/simple")
    transcript.take("fetching https://ann:S3CRET@index.example/simple")
    for text in (log.getvalue(), *lines, *transcript.last_lines):
        assert "S3CRET" not in text
        assert "index.example/simple" in text
