"""What a job costs at most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.scheduler.profiles import TWO_PARTITIONS
from toolkit.scheduler.estimate import Estimate, estimate, number
from toolkit.scheduler.resources import Resources
from toolkit.scheduler.values import NO_TIME_LIMIT, Gpus, parse_array


def of(**resources: Any) -> Estimate:
    return estimate(TWO_PARTITIONS, Resources(**resources))


@pytest.mark.parametrize(
    ("resources", "hours", "price"),
    [
        ({"partition": "gpu", "time": 3600}, 1, 1.5),
        ({"partition": "gpu", "time": 1800, "nodes": 4}, 2, 3),
        ({"partition": "gpu", "time": 3600, "gpus": Gpus(9)}, 3, 4.5),
        ({"partition": "gpu", "time": 3600, "array": parse_array("0-9%2")}, 10, 15),
        ({"partition": "gpu"}, 1, 1.5),  # the partition's default time
        ({"partition": "gpu", "time": NO_TIME_LIMIT}, 24, 36),  # its limit
        ({"time": 60}, 1 / 60, None),  # the default partition has no price
        ({}, 5 / 60, None),
        ({"partition": "elsewhere"}, None, None),
        ({"partition": "elsewhere", "time": 7200}, 2, None),
    ],
)
def test_node_hours_and_price(resources: dict[str, Any], hours: float | None, price: float | None) -> None:
    found = of(**resources)
    assert (found.node_hours, found.price) == (pytest.approx(hours) if hours else None, price)


def test_estimate_in_words() -> None:
    assert of(partition="gpu", time=1800, nodes=4, array=parse_array("0-1")).lines() == (
        "At most 4 node-hours: 2 tasks x 4 nodes x 30 minutes (the job's time limit)",
        "At most 6 points",
    )
    assert of(partition="gpu").lines()[0] == "At most 1 node-hour: 1 node x 1 hour (the default of partition gpu)"
    assert of().lines()[1] == "No price: the cluster profile has none for this partition."
    assert of(partition="elsewhere").lines() == ("No estimate: no time limit is known. Add --time.",)


def test_estimate_of_a_cluster_without_partitions() -> None:
    found = estimate(replace(TWO_PARTITIONS, partitions=()), Resources(time=3600, gpus=Gpus(8)))
    assert (found.partition, found.nodes, found.node_hours, found.price) == (None, 1, 1, None)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0833333, "0.08333"), (12.0, "12"), (1234.567, "1234.57"), (0.5, "0.5"), (10, "10")]
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text
