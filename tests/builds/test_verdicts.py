"""Which verdict of the audit ends a build."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.builds.asked import request
from toolkit.builds.steps import _require_verdict
from toolkit.recipes.model import Recipe, Target
from toolkit.support.errors import CheckFailed
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path


def judged(verdict: Verdict, target: Target = Target(), required: Verdict | None = None) -> None:  # noqa: B008
    asked: Any = request("mine")
    assert isinstance(asked.recipe, Recipe)
    plan: Any = SimpleNamespace(request=replace(asked, recipe=replace(asked.recipe, target=target, verdict=required)))
    audit: Any = SimpleNamespace(verdict=verdict, findings=())
    _require_verdict(plan, audit)


@pytest.mark.usefixtures("here")
def test_image_that_is_broken_for_its_target_is_not_built() -> None:
    with pytest.raises(CheckFailed, match="is gpu-broken, and its recipe requires gpu-ready"):
        judged(Verdict.GPU_BROKEN, Target(("V100",)))
    with pytest.raises(CheckFailed, match="requires cpu-only"):
        judged(Verdict.GPU_BROKEN, Target(driver="535"), Verdict.CPU_ONLY)


def test_other_verdicts_pass_without_a_requirement(here: Path) -> None:
    assert here.is_dir()
    judged(Verdict.GPU_BROKEN)
    for verdict in (Verdict.GPU_READY, Verdict.NO_FRAMEWORK, Verdict.CPU_ONLY):
        judged(verdict, Target(("V100",)))
