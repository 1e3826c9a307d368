"""Limits of a whole job, and the queue that a routing queue of PBS passes it on to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolkit.scheduler.job_limits import destination, refusals
from toolkit.scheduler.limits import check_request
from toolkit.scheduler.needs import Needs
from toolkit.scheduler.profiles import JobLimits, Partition, Profile
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.resources import Resources
from toolkit.scheduler.values import Gpus

GIB = 1024**3
SMALL = Partition("small", max_time=3600, max_nodes=2, cores=8, gpus=2, job=JobLimits(max_gpus=1))
BIG = Partition("big", max_nodes=2, cores=8, gpus=2, job=JobLimits(min_gpus=2))
ROUTE = Partition("route", True, destinations=(SMALL, BIG))
SITE = Profile("x", Path("x.toml"), Scheduler.OPENPBS, partitions=(ROUTE,))


@pytest.mark.parametrize(
    ("limits", "needs", "reason"),
    [
        (JobLimits(max_gpus=1), Needs(gpus=2), "allows a job 1 GPU in all, and the job asks for 2"),
        (JobLimits(min_gpus=2), Needs(gpus=1), "is for jobs of at least 2 GPUs in all, and the job asks for 1"),
        (JobLimits(min_gpus=2), Needs(), ""),  # PBS compares a minimum with what a job asks for only
        (JobLimits(max_cores=8), Needs(nodes=2, cores=8), "allows a job 8 cores in all, and the job asks for 16"),
        (JobLimits(max_nodes=1), Needs(nodes=2), "allows a job 1 node in all, and the job asks for 2"),
        (
            JobLimits(max_memory=GIB),
            Needs(nodes=2, memory=GIB),
            "allows a job 1 GiB of memory in all, and the job asks",
        ),
        (JobLimits(min_time=600), Needs(time=60), "is for jobs of at least 10 minutes, and the job asks for 1 minute"),
    ],
)
def test_limits_of_a_whole_job(limits: JobLimits, needs: Needs, reason: str) -> None:
    assert " ".join(refusals(Partition("q", job=limits), needs)).startswith(reason)
    assert bool(reason) is bool(list(refusals(Partition("q", job=limits), needs)))


def test_routing_queue_passes_a_job_on_to_the_first_that_takes_it() -> None:
    assert destination(ROUTE, Needs(gpus=1)) is SMALL
    assert destination(ROUTE, Needs(gpus=2)) is BIG
    assert destination(ROUTE, Needs(time=7200)) is BIG
    assert destination(ROUTE, Needs(gpus=1, time=7200)) is None
    assert destination(ROUTE, Needs(cores=99)) is SMALL  # where it would never start


# As on a real OpenPBS 23.06 with these queues, two nodes of 8 cores and 2 GPUs (2026-11-24).
@pytest.mark.parametrize(
    ("resources", "message", "fix"),
    [
        ({"gpus": Gpus(1)}, "", ""),
        ({"gpus": Gpus(2)}, "", ""),
        ({"gpus": Gpus(4), "nodes": 2}, "", ""),
        ({"time": 7200}, "", ""),
        ({"gpus": Gpus(3)}, "route passes jobs on to big, which has 2 GPUs on a node, and the job asks for 3 on 1 node",
         "Nearest: --nodes 2 --gpus 4"),
        ({"cpus_per_task": 9}, "route passes jobs on to small, which has 8 cores on a node", "--cpus-per-task 8"),
        ({"gpus": Gpus(1), "time": 7200}, "route passes jobs on to big, which is for jobs of at least 2", "--time"),
    ],
)  # fmt: skip
def test_job_through_a_routing_queue(resources: dict[str, Any], message: str, fix: str) -> None:
    found = check_request(SITE, Resources(**resources))
    assert bool(found) is bool(message)
    assert message in " ".join(finding.message for finding in found)
    assert fix in str(found[0].fix if found else "")
