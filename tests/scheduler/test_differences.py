"""How a profile differs from what a scheduler says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.scheduler.profiles import TWO_PARTITIONS
from toolkit.scheduler.differences import differences
from toolkit.scheduler.profiles import GpuType, Profile
from toolkit.scheduler.programs import Scheduler


def said(host: Profile) -> list[str]:
    return [finding.message for finding in differences(TWO_PARTITIONS, host)]


def changed(**values: Any) -> Profile:
    first = replace(TWO_PARTITIONS.partitions[0], **values)
    return replace(TWO_PARTITIONS, partitions=(first, *TWO_PARTITIONS.partitions[1:]))


def test_the_same_and_what_the_profile_leaves_out_are_no_differences() -> None:
    assert said(TWO_PARTITIONS) == []
    assert said(changed(default_time=60, min_nodes=1)) == []
    assert differences(replace(TWO_PARTITIONS, partitions=(), gpu_types=()), TWO_PARTITIONS) == ()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_time": 600}, "partition debug: time limit is 5 minutes in the profile, and 10 minutes on this cluster"),
        ({"max_time": None}, "partition debug: time limit is 5 minutes in the profile, and no limit on this cluster"),
        ({"memory": 8 << 30}, "memory of a node is 16 GiB in the profile, and 8 GiB on this cluster"),
        ({"gpus": 4}, "GPUs of a node is 2 in the profile, and 4 on this cluster"),
    ],
)
def test_limits_that_differ(values: dict[str, Any], message: str) -> None:
    (found,) = said(changed(**values))
    assert message in found


def test_partitions_gpu_types_and_schedulers_that_differ() -> None:
    host = replace(TWO_PARTITIONS, partitions=TWO_PARTITIONS.partitions[1:], gpu_types=(GpuType("a100"),))
    assert said(host) == [
        "partition debug is in the profile, and not on this cluster (it has gpu, cpu)",
        "GPU type v100 is in the profile, and not on this cluster (it has a100)",
    ]
    assert [finding.message for finding in differences(host, TWO_PARTITIONS)] == [
        "partition debug is on this cluster, and not in the profile"
    ]
    assert said(replace(TWO_PARTITIONS, scheduler=Scheduler.OPENPBS)) == [
        "the scheduler is slurm in the profile, and pbs on this host"
    ]
