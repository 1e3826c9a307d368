"""Cluster profiles for tests."""

from __future__ import annotations

from pathlib import Path

from toolkit.scheduler.profiles import GpuType, Partition, Profile
from toolkit.scheduler.programs import Scheduler

SHIPPED = Path(__file__).parents[2] / "sbatch/clusters"
GIB = 1024**3

TWO_PARTITIONS = Profile(
    name="mine",
    path=Path("mine.toml"),
    scheduler=Scheduler.SLURM,
    gpu_types=(GpuType("v100", "V100", "7.0", 32 * GIB, "535.104.05"), GpuType("a100", "A100")),
    partitions=(
        Partition(
            *("debug", True),
            max_time=300,
            max_nodes=1,
            cores=4,
            memory=16 * GIB,
            gpus=2,
            gpu_types=("v100",),
        ),
        Partition(
            "gpu",
            max_time=86_400,
            default_time=3600,
            max_nodes=4,
            cores=64,
            memory=256 * GIB,
            gpus=4,
            gpu_types=("a100",),
            node_hours=48,
            price=1.5,
        ),
        Partition("cpu", max_time=7 * 86_400, min_nodes=2, cores=64, memory=256 * GIB, gpus=0),
    ),
    max_tasks=1000,
    unit="points",
)

# Every key of the format.
WHOLE = """
description = "Everything"
scheduler = "slurm"
sources = ["a manual"]
checked = "2026-11-23"
required = ["account", "time"]
internet = false
modules = ["apptainer/1.4", "cuda"]
module_setup = "/etc/profile.d/modules.sh"
binds = ["/scratch", "/data:/data:ro"]
proxy = "http://proxy.example.org:3128"
no_proxy = ["localhost", ".example.org"]
max_tasks = 1000
price_unit = "points"
arguments = ["-g {account}"]

[request]
gpus = "--gres=gpu:{type}:{count}"
time = "--time={time}"

[[gpu]]
type = "a100"
model = "A100"
capability = "8.0"
memory_per_gpu = "80G"
driver = "550.54.15"

[[partition]]
name = "gpu"
default = true
description = "GPUs"
max_time = "1-00:00:00"
default_time = "01:00:00"
min_nodes = 1
max_nodes = 8
cores_per_node = 64
memory_per_node = "500G"
gpus_per_node = 4
gpu_types = ["a100"]
max_node_hours = 100
price_per_node_hour = 2.5
"""
