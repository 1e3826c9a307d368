"""The plan of a build: how much room its inputs need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import request
from tests.inventory.making import fill, squash
from toolkit.builds.plan import local_room
from toolkit.builds.resolve import _first_room
from toolkit.builds.room import NOTHING, UNKNOWN, Room

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
    assert local_room(asked) == UNKNOWN
    assert local_room(own) == Room(4000, 1000), "a base of one's own counts for the room that is needed"


@pytest.mark.programs
def test_zeros_of_a_base_need_the_room_that_they_take_unpacked(here: Path, tmp_path: Path) -> None:
    base = squash(fill(tmp_path / "root", {"zeros": bytes(50 << 20)}), here / "base.sif")
    packed = base.stat().st_size
    assert packed < 100_000
    needed = local_room(request("mine", base="base.sif"))
    assert 50 << 20 < needed.build < 51 << 20
    assert needed.image == packed
    assert local_room(request("mine", base="base.sif", sandbox=True)).image > 50 << 20
    (tmp_path / "root/.singularity.d").mkdir()
    sandbox = local_room(request(f"{tmp_path / 'root'}/", output=here / "out.sif"))
    assert 50 << 20 < sandbox.build < 51 << 20
    assert sandbox.image == 0
    asked = request("mine", base="base.sif")
    assert _first_room(asked) == NOTHING, "a layered image may be possible"
    assert _first_room(replace(asked, options=replace(asked.options, layered=False))) == needed
