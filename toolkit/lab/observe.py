"""What a lab is doing: its nodes, its queue, and the jobs that have finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.scheduler.environment import clean_environment
from toolkit.scheduler.slurm import FinishedJob, parse_finished
from toolkit.scheduler.slurm_nodes import QUEUE_FORMAT, Node, QueuedJob, parse_node, parse_queue
from toolkit.support.processes import run

if TYPE_CHECKING:
    from toolkit.lab.registry import Lab

__all__ = ["FinishedJob", "Node", "QueuedJob", "finished_jobs", "nodes", "queue"]

_TIMEOUT = 30.0  # seconds


def nodes(lab: Lab) -> tuple[Node, ...]:
    """The nodes of a lab, in their order; empty while its controller gives no answer."""
    done = run(
        ["scontrol", "show", "node", "--details", "--oneliner"],
        env=clean_environment(lab.environment()),
        timeout=_TIMEOUT,
    )
    found = {node.name: node for line in done.stdout.splitlines() if (node := parse_node(line)) is not None}
    return tuple(found[name] for name in lab.plan.node_names if name in found)


def queue(lab: Lab) -> tuple[QueuedJob, ...]:
    """The jobs that wait or run, oldest first; empty while the controller gives no answer."""
    argv = ["squeue", "--noheader", "--sort=i", f"--format={QUEUE_FORMAT}"]
    return parse_queue(run(argv, env=clean_environment(lab.environment()), timeout=_TIMEOUT).stdout)


def finished_jobs(lab: Lab) -> tuple[FinishedJob, ...]:
    """The jobs that have ended, in the order of their ends, from Slurm's jobcomp/filetxt: it needs no database."""
    try:
        text = lab.place.finished_jobs.read_text(errors="replace")
    except FileNotFoundError:  # slurmctld makes it with the first job
        return ()
    return tuple(job for line in text.splitlines() if (job := parse_finished(line)) is not None)
