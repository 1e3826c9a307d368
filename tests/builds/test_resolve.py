"""From a request to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import RUNTIME, context, request
from toolkit.builds import bootstrapped
from toolkit.builds import room as room_module
from toolkit.builds.context import Listener
from toolkit.builds.plan import OwnSource
from toolkit.builds.record import Record, Tools
from toolkit.builds.resolve import resolve
from toolkit.builds.room import UNKNOWN
from toolkit.builds.target import BuildTarget, TargetKind
from toolkit.definitions.definition import Definition
from toolkit.support.errors import MissingOnHost

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("preview", [True, False])
def test_a_plan_is_complete_whatever_is_built(here: Path, monkeypatch: pytest.MonkeyPatch, preview: bool) -> None:
    monkeypatch.setattr(bootstrapped, "bootstrapped_base", lambda *_: None)
    plan = resolve(request("mine"), context(here, preview=preview))
    assert isinstance(plan.source, Definition)
    assert "Bootstrap: debootstrap" in plan.source.text
    assert (plan.record.target, plan.record.base and plan.record.base.name) == ("recipe:mine", "debian-12")
    assert bool(plan.record.inputs) is not preview
    assert (plan.locked, plan.lends_uv, plan.room) == (None, False, UNKNOWN)
    copy = resolve(request("docker://a/b:1"), context(here, preview=preview))
    assert isinstance(copy.source, Definition)
    assert "From: a/b:1" in copy.source.text
    assert resolve(request("k.def"), context(here, preview=preview)).source == OwnSource(here / "k.def")
    sandbox = resolve(request("sb/", output=here / "out.sif"), context(here, preview=preview))
    assert sandbox.source == OwnSource(here / "sb")
    assert sandbox.record == Record(
        BuildTarget(TargetKind.SANDBOX, str(here / "sb")).identity, tools=Tools(runtime=RUNTIME.version_text)
    )
    assert (here / "area").exists() is not preview


def test_room_too_small_before_pull(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_module, "free_space", lambda _path: 1000)
    steps: list[str] = []
    with pytest.raises(MissingOnHost, match="not enough space"):
        resolve(request("mine"), context(here, preview=False), Listener(steps.append))
    assert steps == []
