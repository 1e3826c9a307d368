"""Why a build failed: the gravest reason first, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pins.locks import SMALL
from toolkit.builds.failure import Attempt, explain_failure
from toolkit.builds.room import RoomWatch
from toolkit.pins.guard.payload.log_lines import BY_APT, DIFFERENCE, PREFIX
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed, CtkError, ProgramFailed
from toolkit.support.paths import WorkArea

RECIPE = Recipe("mine", Path("defs/mine.toml"), Base("b", "localimage", "/b.sif"))
LOG, AREA = Path("mine.sif.build.log"), WorkArea(Path("/area"), "test")
POST = "INFO:    Running post scriptlet"
NO_COMPILER = "error: command 'gcc' failed: No such file or directory"


def explained(*lines: str, recipe: Recipe | None = RECIPE, status: int = 255) -> CtkError:
    return explain_failure(Attempt("building mine", recipe, SMALL, LOG, AREA), status, list(lines), RoomWatch([]))


def test_difference_of_the_guard_is_the_answer_no() -> None:
    difference = PREFIX + DIFFERENCE.format(difference="torch: 2.5.1 -> 2.6.0 (requested by name)")
    error = explained(POST, "+ pip install torch", NO_COMPILER, difference)
    assert isinstance(error, CheckFailed)
    assert error.code == "guard-difference"
    assert "protects: torch: 2.5.1 -> 2.6.0 (requested by name)" in error.message
    assert str(LOG) in (error.fix or "")


def test_difference_by_apt_has_its_own_fix() -> None:
    by_apt = PREFIX + DIFFERENCE.format(difference=f"numpy: 1.26 -> 1.24 ({BY_APT}: python3-numpy installed it)")
    by_pip = PREFIX + DIFFERENCE.format(difference="torch: 2.5.1 -> 2.6.0 (requested by name)")
    assert (explained(POST, by_apt).fix or "").startswith("Remove the Debian package that brings it from `apt`")
    assert (explained(POST, by_apt, by_pip).fix or "").startswith("Request versions that fit")


@pytest.mark.parametrize(
    ("recipe", "fix"),
    [(RECIPE, "On Debian and Ubuntu: ctk add --apt mine "), (None, "Install it in %post: apt-get install -y ")],
)
def test_a_missing_compiler_is_installed_where_the_command_stands(recipe: Recipe | None, fix: str) -> None:
    error = explained(POST, "+ pip install thing", NO_COMPILER, recipe=recipe)
    assert isinstance(error, ProgramFailed)
    assert error.message.startswith("building mine failed (status 255): ")
    assert error.fix is not None
    assert error.fix.startswith(fix)
    assert "gcc" in error.fix
    assert (error.log, error.exit_status) == (LOG, 4)


def test_without_a_known_cause_the_command_is_named() -> None:
    error = explained(POST, "+ make install", "make: *** [all] Error 7", status=7)
    assert error.message == "building mine failed (status 7), in the %post command: make install"
    assert (error.code, error.fix) == ("build-failed", None)


def test_a_command_of_ctk_s_own_is_not_named() -> None:
    assert explained(POST, "+ PYTHONNOUSERSITE=1 python guard.py", "odd").message == "building mine failed (status 255)"


def test_outside_of_post_the_runtime_s_own_reason_is_given() -> None:
    error = explained("INFO:    Starting build...", "FATAL:   While performing build: the bootstrap agent is unknown")
    assert "the bootstrap agent is unknown" in error.message


def test_a_full_disk_comes_before_what_it_broke() -> None:
    error = explained(POST, "+ pip install thing", NO_COMPILER, "FATAL:   write /x: no space left on device")
    assert error.code == "disk-full"
    assert "gcc" not in error.message


@pytest.mark.parametrize(
    ("recipe", "words"), [(RECIPE, "correct `apt` in the recipe."), (None, "correct the command in %post.")]
)
def test_fix_names_where_the_user_wrote_the_package(recipe: Recipe | None, words: str) -> None:
    error = explained(POST, "+ apt-get install nosuch", "E: Unable to locate package nosuch", recipe=recipe)
    assert error.code == "missing-apt-package"
    assert (error.fix or "").endswith(words)
