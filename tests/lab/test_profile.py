"""The cluster profile of a lab agrees with its slurm.conf."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from toolkit.lab.configuration import Host, slurm_conf
from toolkit.lab.paths import LabPaths
from toolkit.lab.plan import LabPlan
from toolkit.lab.profile import lab_profile
from toolkit.scheduler.detection import seconds_of
from toolkit.scheduler.profile_file import load_profile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "plan",
    [
        LabPlan(nodes=2, gpus_per_node=3, cpus_per_node=8, gpu_type="a100"),
        LabPlan(name="class-2", gpus_per_node=0),
        LabPlan(nodes=4, real_gpus=("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3", "/dev/nvidia4")),
        LabPlan(nodes=3, real_gpus=("/dev/nvidia0",)),
    ],
)
def test_profile_has_the_limits_of_the_configuration(plan: LabPlan, tmp_path: Path) -> None:
    place = LabPaths(tmp_path)
    place.profile(plan.name).parent.mkdir()
    place.profile(plan.name).write_text(lab_profile(plan, place))
    profile = load_profile(place.profile(plan.name))
    text = slurm_conf(plan, place, Host("host", "ann"), 20100)
    lines = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in text.splitlines()]
    partitions = {line["PartitionName"]: line for line in lines if "PartitionName" in line}
    assert [partition.name for partition in profile.partitions] == list(partitions)
    for partition in profile.partitions:
        line = partitions[partition.name]
        nodes = plan.nodes if line["Nodes"] == "ALL" else len(line["Nodes"].split(","))
        assert partition.max_time == seconds_of(line["MaxTime"])
        assert partition.default_time == seconds_of(line["DefaultTime"])
        assert partition.max_nodes == int(line.get("MaxNodes", nodes))
        assert partition.is_default == (line.get("Default") == "YES")
        assert (partition.cores, partition.memory) == (plan.cpus_per_node, plan.memory_per_node * 1024**2)
        assert partition.gpus == max(plan.gpu_count(node) for node in plan.node_names)
