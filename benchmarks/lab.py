"""The time to a working cluster: from `ctk lab up` to the end of the first job."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import environment_of_ctk
from benchmarks.section import Section, Table, Target
from toolkit import __version__

_SIZES = (2, 4, 16)
_ROUNDS = 5
_NAME = "bench"
_QUIETLY: dict[str, Any] = {"capture_output": True, "check": True}


def run() -> Section:
    """Start labs, run one job in each, and stop them."""
    ctk = str(environment_of_ctk() / "ctk")
    figures = {nodes: [_once(ctk, nodes) for _ in range(_ROUNDS)] for nodes in _SIZES}
    rows = tuple(
        (str(nodes), *(f"{statistics.median(column):.1f}" for column in zip(*found, strict=True)))
        for nodes, found in figures.items()
    )
    worst = max(up + job for found in figures.values() for up, job, _ in found)
    return Section(
        title="The practice cluster",
        words=f"A real Slurm with two stand-in GPUs a node. Medians of {_ROUNDS} rounds; the job asks for one GPU.",
        tables=(Table("From nothing and back", ("nodes", "up, s", "first job, s", "down, s"), rows),),
        targets=(Target(f"from `ctk lab up` to the first finished job under 20 s: {worst:.1f} s at most", worst < 20),),
        versions=(f"ctk {__version__}", _slurm()),
    )


def _once(ctk: str, nodes: int) -> tuple[float, float, float]:
    times = [time.perf_counter()]
    lab = [ctk, "lab", "up", "--name", _NAME, "--nodes", str(nodes), "--json"]
    done = subprocess.run(lab, **_QUIETLY)
    times.append(time.perf_counter())
    try:
        environment = {**os.environ, **json.loads(done.stdout)["environment"]}
        with TemporaryDirectory() as directory:
            subprocess.run(["sbatch", "--gpus", "1", "--wrap", "true"], cwd=directory, env=environment, **_QUIETLY)
            # Not `sbatch --wait`, which polls only every ten seconds.
            while subprocess.run(["squeue", "--noheader"], env=environment, **_QUIETLY).stdout:
                time.sleep(0.1)
        times.append(time.perf_counter())
    finally:
        subprocess.run([ctk, "lab", "down", "--name", _NAME], **_QUIETLY)
    times.append(time.perf_counter())
    up, job_end, down = (later - earlier for earlier, later in pairwise(times))
    return up, job_end, down


def _slurm() -> str:
    return subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True).stdout.strip()
