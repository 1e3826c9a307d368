"""The plan of a build: how much room its inputs need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.builds.asked import request
from toolkit.builds.plan import local_size

if TYPE_CHECKING:
    from pathlib import Path


def test_a_request_is_complete_before_anything_is_looked_up(here: Path) -> None:
    asked = request("mine")
    assert (asked.output, asked.log) == (here / "mine.sif", here / "mine.sif.build.log")
    assert asked.recipe is not None
    assert asked.base == asked.recipe.base
    assert not asked.recipe.rebased
    assert request("mine", sandbox=True).output == here / "mine"
    own = request("mine", base="base.sif")
    assert own.recipe is not None
    assert own.recipe.rebased
    assert local_size(asked) == 0
    assert local_size(own) == 4000, "a base of one's own counts for the room that is needed"
