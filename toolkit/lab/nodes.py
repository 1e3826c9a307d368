"""A node of a lab fails, as if its power were cut, and comes back."""

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
    """End everything on one node at once: its daemon, its job steps, its jobs' processes.

    The controller is told nothing. It notices after SlurmdTimeout, and lets the node's jobs run again elsewhere.
    Raises WrongInput where there is no such node, or it is dead already; MissingOnHost where the lab is not up here.
    """
    _check(lab, node)
    victims = [member for member in find_members(lab.place) if member.part == node]
    if not any(member.role is Role.DAEMON for member in victims):
        raise WrongInput(
            f"the node {node} is dead already",
            fix=f"ctk lab restore-node {node} --name {lab.name}",
            code="node-is-dead",
        )
    while victims:
        kill(victims)
        victims = [member for member in find_members(lab.place) if member.part == node]


def restore_node(lab: Lab, node: str) -> None:
    """Start a node's daemon again; return when the controller counts on the node.

    Where the controller has not given the node up yet, it is told that the node is down, as an administrator would:
    from a daemon that is back so soon it would not learn that the node's jobs are lost, and wait for them.
    Raises WrongInput where there is no such node, or it is alive; MissingOnHost where the lab is not up here;
    ProgramFailed where the node does not come up.
    """
    _check(lab, node)
    if any(member.role is Role.DAEMON and member.part == node for member in find_members(lab.place)):
        raise WrongInput(
            f"the node {node} is alive", fix=f"ctk lab kill-node {node} --name {lab.name}", code="node-is-alive"
        )
    if any(state.name == node and not state.is_down for state in nodes(lab)):
        down = ["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=power lost"]
        run(down, env=clean_environment(lab.environment()), timeout=_TIMEOUT).require("telling the controller")
    started = datetime.now().replace(microsecond=0)
    with supervisor(lab.place, find_programs()) as new:
        daemon = new.start_slurmd(node)
        wait_until(lambda: _is_back(lab, node, started), [daemon], lab.place, seconds=_SECONDS_TO_RETURN)


def _check(lab: Lab, node: str) -> None:
    require_up(lab)  # without its controller nobody would notice what happens to a node
    known = lab.plan.node_names
    if node not in known:
        raise WrongInput(
            f"the lab {lab.name!r} has no node {node!r}.{did_you_mean(node, known)} It has {known[0]} to {known[-1]}.",
            code="no-such-node",
        )


def _is_back(lab: Lab, node: str, started: datetime) -> bool:
    """Whether the controller has heard from the new daemon: it may not have noticed yet that the old one died."""
    return any(
        state.name == node and state.responds and state.slurmd_started is not None and state.slurmd_started >= started
        for state in nodes(lab)
    )
