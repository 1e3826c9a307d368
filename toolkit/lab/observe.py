"""What a lab is doing: its nodes, and the jobs that have finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.support.processes import run

if TYPE_CHECKING:
    from toolkit.lab.registry import Lab


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node and its state in Slurm's own word (`idle`, `mixed`, `down*`, ...; `*` means that it does not answer)."""

    name: str
    state: str


def node_states(lab: Lab) -> tuple[NodeState, ...]:
    """The nodes of a lab in their order; empty while its controller gives no answer."""
    done = run(["sinfo", "-h", "-N", "-p", "cpu", "-o", "%N %T"], env=lab.environment(), timeout=30)
    if not done.ok:
        return ()
    states = dict(line.split() for line in done.stdout.splitlines())
    return tuple(NodeState(name, states[name]) for name in lab.plan.node_names if name in states)
