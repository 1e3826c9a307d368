"""The error for a recipe whose own check failed."""

from __future__ import annotations

from pathlib import Path

from toolkit.builds.own_check import check_error
from toolkit.pins.guard.trials import FailedCheck
from toolkit.recipes.model import Base, Recipe

RECIPE = Recipe("mine", Path("defs/mine.toml"), Base("b", "localimage", "/b.sif"))
COMMAND = '["python", "-c", "import keras_bert"]'


def test_error_has_command_status_last_lines_and_fix() -> None:
    printed = ("Traceback (most recent call last):", "", *(f"  line {number}" for number in range(20)), "x" * 400)
    error = check_error("building mine", RECIPE, FailedCheck(COMMAND, "exited with status 1", printed), Path("a.log"))
    first, *lines = error.message.splitlines()
    assert first == f"building mine failed: the check {COMMAND} exited with status 1:"
    assert lines == [*(f"  line {number}" for number in range(13, 20)), "x" * 300]
    assert (error.exit_status, error.code) == (1, "check-failed")
    assert error.fix is not None
    assert error.fix.splitlines() == [
        "Choose other versions of the packages (ctk add mine PACKAGE==VERSION), or correct [check] in defs/mine.toml.",
        "The build has no GPU: a check cannot need one. Full log: a.log",
    ]


def test_error_of_a_silent_check_in_a_definition() -> None:
    error = check_error("building x.def", None, FailedCheck(COMMAND, "timed out after 600 s", ()), Path("a.log"))
    assert error.message == f"building x.def failed: the check {COMMAND} timed out after 600 s, and printed nothing"
    assert "the recipe that the definition was made from" in str(error.fix)
