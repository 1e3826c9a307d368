"""The cluster profile of a lab: its nodes and limits, so that ctk checks jobs against them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.scheduler.profile_text import profile_text
from toolkit.scheduler.profiles import GpuType, Partition, Profile
from toolkit.scheduler.programs import Scheduler

if TYPE_CHECKING:
    from toolkit.lab.paths import LabPaths
    from toolkit.lab.plan import LabPlan

_DAY, _HOUR, _MINUTE = 86400, 3600, 60
_MIB = 1024**2


def lab_profile(plan: LabPlan, place: LabPaths) -> str:
    """The text of the profile of a lab; its partitions are those of `slurm_conf`."""
    gpus = [plan.gpu_count(node) for node in plan.node_names]
    with_gpus = sum(count > 0 for count in gpus)
    cpu = Partition(
        "cpu",
        is_default=True,
        max_time=_DAY,
        default_time=_HOUR,
        max_nodes=plan.nodes,
        cores=plan.cpus_per_node,
        memory=plan.memory_per_node * _MIB,
        gpus=max(gpus),
        gpu_types=(plan.gpu_type,) if with_gpus else (),
    )
    others = replace(cpu, is_default=False)
    partitions = [cpu, replace(others, name="debug", max_time=5 * _MINUTE, default_time=_MINUTE, max_nodes=1)]
    if with_gpus:
        partitions.append(replace(others, name="gpu", max_nodes=with_gpus))
    profile = Profile(
        name=plan.name,
        path=place.profile(plan.name),
        scheduler=Scheduler.SLURM,
        description="The practice cluster that is selected here (ctk lab env)",
        partitions=tuple(partitions),
        gpu_types=(GpuType(plan.gpu_type),) if with_gpus else (),
    )
    return profile_text(profile, ["Written by `ctk lab up`, removed by `ctk lab down`."])
