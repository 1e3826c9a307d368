"""The options nearest to a request that a partition allows. tests/scheduler/test_limits.py has the properties."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.profiles import TWO_PARTITIONS
from toolkit.scheduler.nearest import nearest_options
from toolkit.scheduler.resources import Resources
from toolkit.scheduler.values import NO_TIME_LIMIT, Gpus


@pytest.mark.parametrize(
    ("partition", "resources", "options"),
    [
        ("debug", {"time": 300}, None),
        ("debug", {"time": 301}, "--time 00:05:00"),
        ("debug", {"time": NO_TIME_LIMIT}, "--time 00:05:00"),
        ("debug", {"gpus": Gpus(3, "a100")}, "--nodes 1 --gpus v100:2"),
        ("gpu", {"gpus": Gpus(9), "nodes": 1}, "--nodes 3"),
        ("gpu", {"gpus": Gpus(99)}, "--nodes 4 --gpus 16"),
        ("cpu", {"gpus": Gpus(1)}, None),
        ("cpu", {"nodes": 1}, "--nodes 2"),
        ("debug", {"tasks_per_node": 9}, "--ntasks-per-node 4"),
        ("debug", {"tasks_per_node": 2, "cpus_per_task": 9}, "--cpus-per-task 2"),
        ("debug", {"mem": "1T", "nodes": 2}, "--nodes 1 --mem 16G"),
        ("gpu", {"nodes": 9, "time": 10**6}, "--nodes 4 --time 12:00:00"),
    ],
)
def test_nearest_options(partition: str, resources: dict[str, Any], options: str | None) -> None:
    found = TWO_PARTITIONS.partition(partition)
    assert found is not None
    assert nearest_options(found, Resources(**resources)) == options
