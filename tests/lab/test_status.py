"""What is said of a lab at one moment."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path

import pytest

from toolkit.lab import registry
from toolkit.lab.cluster import Condition, condition, down
from toolkit.lab.nodes import kill_node, restore_node
from toolkit.lab.observe import Node
from toolkit.lab.paths import LabPaths
from toolkit.lab.plan import LabPlan
from toolkit.lab.registry import Lab
from toolkit.lab.status import Status, judge_lab, log_file, require_up
from toolkit.support.errors import MissingOnHost, WrongInput

LAB = Lab(LabPlan(), LabPaths(Path("/tmp/ctk-lab-abcdefgh")), "host", 20100)


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


def test_a_lab_that_is_not_up_here_has_no_nodes_to_kill_or_restore() -> None:
    for host, code in (("another-host", "lab-elsewhere"), (socket.gethostname(), "lab-crashed")):
        lab = dataclasses.replace(LAB, host=host)
        for refused in (lambda lab: kill_node(lab, "n1"), lambda lab: restore_node(lab, "n1"), require_up):
            with pytest.raises(MissingOnHost) as caught:
                refused(lab)
            assert caught.value.code == code


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


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


def test_only_a_lab_s_own_daemons_have_logs() -> None:
    assert log_file(LAB, "n4").parent == LAB.place.logs
    for part in ("n5", "slurmctl", "../../etc/passwd"):
        with pytest.raises(WrongInput, match="has no daemon"):
            log_file(LAB, part)
