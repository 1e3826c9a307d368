"""Documents about job scripts and the practice cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.scheduler.values import parse_time
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from datetime import datetime

    from toolkit.jobs.model import Script, Submission
    from toolkit.lab.observe import FinishedJob, Node, QueuedJob
    from toolkit.lab.registry import Lab
    from toolkit.lab.status import Status


def script(made: Script, submission: Submission | None, *, written: bool) -> dict[str, Any]:
    """A job script, and what became of it."""
    job = made.job
    return {
        "scheduler": made.scheduler.value,
        "script": str(made.path) if written else None,
        "job_name": job.name,
        "image": job.image,
        "command": list(job.command),
        "gpus": str(job.gpus) if job.gpus else None,
        "log": job.log(submission.job_id if submission else "ID"),
        "job_id": submission.job_id if submission else None,
        "text": made.text,
    }


def started_lab(lab: Lab) -> dict[str, Any]:
    """A lab that `ctk lab up` started."""
    return {"name": lab.name, "environment": lab.environment(), "port": lab.port}


def listed_lab(lab: Lab, condition: str) -> dict[str, Any]:
    """A row of `ctk lab list`."""
    return {"name": lab.name, "condition": condition, "nodes": lab.plan.nodes, "host": lab.host}


def lab_status(status: Status) -> dict[str, Any]:
    """A lab with its nodes and jobs."""
    return {
        "name": status.lab.name,
        "condition": status.condition.value,
        "environment": status.lab.environment(),
        "nodes": [_node(node) for node in status.nodes],
        "queue": [_queued(job) for job in status.queue],
        "finished": [_finished(job) for job in status.finished],
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "state": node.state,
        "cpus": node.cpus,
        "cpus_used": node.cpus_used,
        "gpus": node.gpus,
        "gpus_used": node.gpus_used,
        "reason": node.reason,
        "slurmd_started": _time(node.slurmd_started),
    }


def _queued(job: QueuedJob) -> dict[str, Any]:
    return {
        "job": job.job,
        "name": job.name,
        "partition": job.partition,
        "state": job.state,
        "seconds": _seconds(job.elapsed),
        "where": job.where,
    }


def _finished(job: FinishedJob) -> dict[str, Any]:
    return {
        "job": job.job,
        "number": job.number,
        "name": job.name,
        "user": job.user,
        "partition": job.partition,
        "state": job.state,
        "exit_status": job.exit_status,
        "signal": job.signal,
        "nodes": job.nodes,
        "submitted": _time(job.submitted),
        "started": _time(job.started),
        "ended": _time(job.ended),
        "directory": job.directory,
    }


def _seconds(elapsed: str) -> int | None:
    try:
        return parse_time(elapsed)
    except WrongInput:  # squeue(1): `INVALID` where a clock was set back
        return None


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
