"""A lab as a whole: what is well, what is not, and where it runs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tests.lab.test_status import LAB
from toolkit.lab import registry
from toolkit.lab.cluster import Condition, condition, down
from toolkit.lab.observe import Node
from toolkit.lab.paths import LabPaths
from toolkit.lab.status import Status, judge_lab
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def node(name: str, state: str) -> Node:
    return Node(name, state, 4, 0, 2, 0, "", None)


def codes(condition: Condition, *nodes: Node, pmix: bool = True) -> list[str]:
    return [finding.code for finding in judge_lab(Status(LAB, condition, nodes, (), (), pmix))]


def test_all_is_well() -> None:
    assert codes(Condition.UP, node("n1", "idle"), node("n2", "mixed"), node("n3", "allocated+completing")) == []


def test_what_is_not() -> None:
    assert codes(Condition.CRASHED) == ["lab-crashed"]
    assert codes(Condition.ELSEWHERE) == ["lab-elsewhere"]
    down = [node("n1", "down+not_responding"), node("n2", "mixed+not_responding"), node("n3", "idle")]
    assert codes(Condition.UP, *down, pmix=False) == ["node-down", "node-down", "no-pmix"]


def test_a_lab_is_known_by_its_boot_or_its_directory_where_the_host_was_renamed(state: Path) -> None:
    renamed = dataclasses.replace(LAB, host="old-name", place=LabPaths(state / "ctk-lab-abcdefgh"))
    assert condition(renamed) is Condition.ELSEWHERE
    assert condition(dataclasses.replace(renamed, boot="of another machine")) is Condition.ELSEWHERE
    assert condition(dataclasses.replace(renamed, boot=registry.this_boot())) is Condition.CRASHED
    renamed.place.directory.mkdir()
    assert condition(renamed) is Condition.CRASHED


def test_a_lab_whose_host_is_gone_can_be_removed(state: Path) -> None:
    gone = dataclasses.replace(LAB, host="gone", place=LabPaths(state / "ctk-lab-abcdefgh"), boot="of long ago")
    with registry.lock(gone.name):
        registry.save(gone)
    with pytest.raises(WrongInput, match="runs on the host gone") as caught:
        down(gone)
    assert (caught.value.fix or "").endswith("ctk lab down --name lab --host-is-gone")
    assert registry.names() == ["lab"]
    down(gone, host_is_gone=True)
    assert [path for path in (state / "state").rglob("*") if path.is_file()] == []
    with pytest.raises(WrongInput, match="was stopped by another process"):
        down(gone, host_is_gone=True)
    assert [path for path in (state / "state").rglob("*") if path.is_file()] == []
