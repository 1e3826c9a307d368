"""Attempts after a resolver that found nothing in time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.python_targets import TORCH
from tests.pins.resolver.test_conflicts import UV, request
from toolkit.pins.resolver import attempts
from toolkit.support.errors import CheckFailed, ProgramFailed

if TYPE_CHECKING:
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.resolver.resolve import Request


def test_a_resolver_timeout_leads_to_the_reason_of_the_newest_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def time_out(*_: object, **__: object) -> None:
        raise ProgramFailed("no versions within 300 s", code="resolver-timeout")

    monkeypatch.setattr(attempts, "resolve_newest", time_out)
    monkeypatch.setattr(attempts, "explain_newest", lambda *_: CheckFailed("TTS 0.22.0, the newest release, …"))
    with pytest.raises(CheckFailed, match="the newest release"):
        attempts.resolve_recipe(UV, request(TORCH), [], Path("/nowhere"))


def test_a_resolver_timeout_is_followed_by_a_question_for_the_newest_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, ...]] = []

    def time_out(_uv: Uv, asked: Request, **_: object) -> None:
        tried.append(asked.aims)
        raise ProgramFailed("no versions within 300 s", code="resolver-timeout")

    monkeypatch.setattr(attempts, "resolve_newest", time_out)
    monkeypatch.setattr(attempts, "explain_newest", lambda *_: None)
    monkeypatch.setattr(attempts, "newest_versions", lambda *_: {"x": "9.1", "y": "3.0"})
    asked = replace(request(TORCH), packages=("x>=9", "y<2", "z==1"))
    with pytest.raises(ProgramFailed, match="within 300 s"):
        attempts.resolve_recipe(UV, asked, [], Path("/nowhere"))
    assert tried == [(), ("x==9.1",)]
