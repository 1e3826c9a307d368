"""The documents of labs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cli.documents.test_images import LAB, QUEUED, STATUS, checked
from toolkit.cli.documents import clusters
from toolkit.lab.cluster import Condition


def test_a_lab_has_the_times_of_its_jobs() -> None:
    found = checked("lab", clusters.lab_status(STATUS))
    assert found["queue"][0]["seconds"] == 93_784
    assert found["nodes"][0]["slurmd_started"] == "2026-11-22T01:02:03"
    assert (found["finished"][0]["submitted"], found["finished"][0]["ended"]) == ("2026-11-22T00:00:00", None)


@pytest.mark.parametrize(("elapsed", "seconds"), [("0:05", 5), ("1:02:03", 3723), ("INVALID", None)])
def test_the_time_that_a_job_has_run_is_in_seconds(elapsed: str, seconds: int | None) -> None:
    status = replace(STATUS, queue=(replace(QUEUED, elapsed=elapsed),))
    assert checked("lab", clusters.lab_status(status))["queue"][0]["seconds"] == seconds


def test_a_started_lab_and_a_listed_lab() -> None:
    assert checked("lab-up", clusters.started_lab(LAB))["environment"]["SLURM_CONF"].startswith("/tmp/ctk-lab-x")
    row = clusters.listed_lab(LAB, Condition.ELSEWHERE.value)
    assert checked("labs", {"labs": [row]})["labs"] == [
        {"name": "lab", "condition": "on another host", "nodes": 4, "host": "login"}
    ]
