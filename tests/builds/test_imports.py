"""What is said, and proposed, where packages of a build cannot be imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pins.locks import SMALL
from toolkit.builds import imports
from toolkit.builds.imports import imports_failed
from toolkit.pins.guard.trials import ImportFailure
from toolkit.recipes.model import Base, Recipe
from toolkit.support.paths import WorkArea

RECIPE = Recipe("mine", Path("defs/mine.toml"), Base("b", "localimage", "/b.sif"))
AREA = WorkArea(Path("/area"), "test")
LOG = Path("mine.sif.build.log")


def failed(error: str, package: str = "timm") -> ImportFailure:
    return ImportFailure(package, "1.0.3", f"import {package}", error)


def searched(monkeypatch: pytest.MonkeyPatch, answer: tuple[str, str] | None) -> list[str]:
    asked: list[str] = []

    def search(_recipe: object, _lock: object, failure: ImportFailure, *_more: object) -> tuple[str, str] | None:
        asked.append(failure.package)
        return answer

    monkeypatch.setattr(imports, "_search", search)
    return asked


def test_each_failure_is_named_with_its_likely_cause_and_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = searched(monkeypatch, ("timm<1", "reason"))
    error = imports_failed("building mine", RECIPE, SMALL, [failed("ValueError: torch>=2.6 is required")], LOG, AREA)
    assert (error.code, error.exit_status) == ("import-failed", 1)
    assert error.message == (
        "building mine failed: timm 1.0.3 cannot be imported: ValueError: torch>=2.6 is required "
        "(likely: it needs torch>=2.6; the image has torch 2.5.1+cu124)"
    )
    assert error.fix is not None
    assert error.fix.splitlines() == [
        "Likely to work (reason): ctk add mine 'timm<1'",
        "If its import needs a GPU or a licence file: ctk build mine --allow-import-failure timm",
        "Full log: mine.sif.build.log",
    ]
    assert asked == ["timm"]


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        ("ImportError: libGL.so.1: cannot open shared object file", "On Debian and Ubuntu: ctk add --apt mine libgl1"),
        ("ImportError: libodd.so: cannot open shared object file", "Find the Debian package that has libodd.so ("),
        ("ImportError: libcuda.so.1: cannot open shared object file", "If its import needs a GPU or a licence file"),
    ],
)
def test_imports_without_helpful_version(monkeypatch: pytest.MonkeyPatch, error: str, fix: str) -> None:
    asked = searched(monkeypatch, None)
    assert (imports_failed("building mine", RECIPE, SMALL, [failed(error)], LOG, AREA).fix or "").startswith(fix)
    assert asked == []


def test_the_index_is_asked_for_three_failures_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = searched(monkeypatch, None)
    error = imports_failed("building mine", RECIPE, SMALL, [failed("KeyError: 1", name) for name in "abcde"], LOG, AREA)
    assert asked == ["a", "b", "c"]
    assert "--allow-import-failure a --allow-import-failure b" in (error.fix or "")


def test_a_definition_has_no_recipe_to_change() -> None:
    error = imports_failed("building k.def", None, None, [failed("ended by SIGILL")], LOG, AREA)
    assert "(likely: it uses an instruction that the CPU of this machine does not have)" in error.message
    assert error.fix == (
        "If its import needs a GPU or a licence file, list it in `skip` under [imports] of the recipe.\n"
        "Full log: mine.sif.build.log"
    )
