"""Simulate a power failure of a lab's node, and restore it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from toolkit.lab.daemons import supervisor, wait_until
from toolkit.lab.members import Role, find_members, kill
from toolkit.lab.observe import nodes
from toolkit.lab.requirements import find_programs
from toolkit.lab.status import require_up
from toolkit.scheduler.environment import clean_environment
from toolkit.support.errors import WrongInput
from toolkit.support.processes import run
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from toolkit.lab.registry import Lab

_SECONDS_TO_RETURN = 40.0
_TIMEOUT = 30.0  # seconds


def kill_node(lab: Lab, node: str) -> None:
    """Kill all processes of one node at once: its daemon, its job steps, its jobs' processes.

    The controller is not informed. It notices after SlurmdTimeout, and requeues the node's jobs.
    Raises WrongInput if there is no such node, or it is already down; MissingOnHost if the lab is not up here.
    """
    _check(lab, node)
    victims = [member for member in find_members(lab.place) if member.part == node]
    if not any(member.role is Role.DAEMON for member in victims):
        raise WrongInput(
            f"the node {node} is already down",
            fix=f"Start it again: ctk lab restore-node {node} --name {lab.name}",
            code="node-is-dead",
        )
    while victims:
        kill(victims)
        victims = [member for member in find_members(lab.place) if member.part == node]


def restore_node(lab: Lab, node: str) -> None:
    """Start a node's daemon again; return when the controller can use the node.

    If the controller has not yet marked the node as down, this does it, as an administrator would: otherwise the
    controller would not notice that the node's jobs are lost, and would wait for them.
    Raises WrongInput if there is no such node, or it is up; MissingOnHost if the lab is not up on this host;
    ProgramFailed if the node does not start.
    """
    _check(lab, node)
    if any(member.role is Role.DAEMON and member.part == node for member in find_members(lab.place)):
        raise WrongInput(
            f"the node {node} is up",
            fix=f"To kill it: ctk lab kill-node {node} --name {lab.name}",
            code="node-is-alive",
        )
    if any(state.name == node and not state.is_down for state in nodes(lab)):
        down = ["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=power lost"]
        run(down, env=clean_environment(lab.environment()), timeout=_TIMEOUT).require(
            "setting the node's state to DOWN"
        )
    started = datetime.now().replace(microsecond=0)
    with supervisor(lab.place, find_programs()) as new:
        daemon = new.start_slurmd(node)
        wait_until(lambda: _is_back(lab, node, started), [daemon], lab.place, seconds=_SECONDS_TO_RETURN)


def _check(lab: Lab, node: str) -> None:
    require_up(lab)  # without its controller the node's state would not change
    known = lab.plan.node_names
    if node not in known:
        raise WrongInput(
            f"the lab {lab.name!r} has no node {node!r}.{did_you_mean(node, known)} Nodes: {known[0]} to {known[-1]}.",
            code="no-such-node",
        )


def _is_back(lab: Lab, node: str, started: datetime) -> bool:
    """Whether the new daemon has registered: the controller may not know yet that the old one was killed."""
    return any(
        state.name == node and state.responds and state.slurmd_started is not None and state.slurmd_started >= started
        for state in nodes(lab)
    )
