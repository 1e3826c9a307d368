"""Cluster profiles on real schedulers: detected, compared, and jobs that they understand as they were asked."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.real.grid_engine import PROGRAMS, GridEngine, running
from tests.real.jobs import Jobs
from tests.real.labs import eventually
from tests.real.pbs import pbs_server
from toolkit.scheduler.grid_engine import parse_details, requested
from toolkit.scheduler.profile_file import load_profile
from toolkit.scheduler.programs import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import PracticeCluster, User


@pytest.fixture
def jobs(lab: PracticeCluster, ground: Path, base_image: Path) -> Iterator[Jobs]:
    directory = ground / f"cluster-{time.monotonic_ns()}"
    directory.mkdir()
    subprocess.run(["chown", lab.user.name, str(directory)], check=True)
    yield Jobs(lab, directory, base_image)
    lab.user.run("scancel", "--me", cwd=directory, env=lab.environment)


def ctk(jobs: Jobs, *words: str, status: int = 0) -> str:
    done = jobs.lab.user.ctk(*words, cwd=jobs.directory, env=jobs.lab.environment, status=status)
    assert "Traceback" not in done.stderr
    return str(done.stdout + done.stderr)


def test_profile_of_the_practice_cluster_is_detected_and_is_the_shipped_one(jobs: Jobs) -> None:
    ctk(jobs, "cluster", "detect", "mine")
    assert "valid, compared with the scheduler" in ctk(jobs, "cluster", "check", "mine")
    assert "valid, compared with the scheduler" in ctk(jobs, "cluster", "check", "lab")
    shown = {name: json.loads(ctk(jobs, "cluster", "show", name, "--json"))["cluster"] for name in ("mine", "lab")}
    limits = [
        [{key: value for key, value in partition.items() if key != "description"} for partition in found["partitions"]]
        for found in shown.values()
    ]
    assert limits[0] == limits[1]
    assert [gpu["type"] for gpu in shown["mine"]["gpu_types"]] == ["tesla"]


def test_what_sbatch_lets_wait_for_ever_is_refused_before_anything_is_written(jobs: Jobs) -> None:
    ctk(jobs, "cluster", "detect", "mine")
    job = ("--image", str(jobs.image), "--gpus", "1", "--partition", "debug", "--time", "2:00:00")
    said = ctk(jobs, "sbatch", "-J", "long", *job, "--cluster", "mine", "--", "true", status=2)
    assert "partition debug allows 5 minutes, and the job asks for 2 hours" in said
    assert "--time 00:05:00" in said
    assert not (jobs.directory / "long.sbatch").exists()
    # The profile of this lab is there without the option, too.
    assert said.splitlines()[0] in ctk(jobs, "sbatch", "-J", "long", *job, "--", "true", status=2)
    # sbatch itself accepts it, and `--test-only` too: without a profile, Slurm's partitions are asked.
    said = ctk(jobs, "sbatch", "-J", "long", *job, "--cluster", "slurm", "--submit", "--", "true")
    number = re.findall(r"Submitted as job (\d+);", said)[0]
    assert f"and the job asks for 2 hours: job {number} will wait until it is cancelled" in said
    eventually(lambda: jobs.show(number, "Reason").startswith("Partition"), "Slurm to say why the job waits")
    assert jobs.show(number, "JobState") == "PENDING"
    jobs.run("scancel", number)
    said = ctk(jobs, "sbatch", "-J", "other", *job, "--cluster", "slurm", "--estimate", "--", "true")
    assert "Slurm would start the job" in said


def test_estimate_asks_slurm(jobs: Jobs) -> None:
    job = ("--image", str(jobs.image), "--gpus", "0", "--cluster", "lab", "--time", "30")
    said = ctk(jobs, "sbatch", "-J", "one", *job, "--nodes", "2", "--estimate", "--", "true")
    assert "At most 1 node-hour: 2 nodes x 30 minutes" in said
    assert "Slurm would start the job at" in said
    profile = jobs.directory / "wrong.toml"
    jobs.lab.user.run("tee", str(profile), cwd=jobs.directory, input='scheduler = "slurm"\n')
    wrong = ("--image", str(jobs.image), "--gpus", "0", "--cluster", str(profile), "--partition", "nowhere")
    said = ctk(jobs, "sbatch", "-J", "two", *wrong, "--estimate", "--", "true", status=1)
    assert "Slurm would refuse the job" in said
    assert "nvalid partition" in said
    assert [path.name for path in jobs.directory.glob("*.sbatch")] == []


def test_job_with_the_templates_of_a_site_is_what_slurm_understands(jobs: Jobs) -> None:
    text = """
scheduler = "slurm"
internet = false
required = ["time"]
[request]
gpus = "--gres=gpu:{type}:{count}"
queue = "-p {queue}"
[[gpu]]
type = "tesla"
[[partition]]
name = "gpu"
default = true
gpus_per_node = 2
gpu_types = ["tesla"]
"""
    profile = jobs.directory / "strange.toml"
    jobs.lab.user.run("tee", str(profile), cwd=jobs.directory, input=text)
    options = ("--image", str(jobs.image), "--gpus", "4", "--time", "5", "--cluster", str(profile), "--no-gpu-gate")
    report = "import os; print('OFFLINE', os.environ['HF_HUB_OFFLINE'], os.environ['CUDA_VISIBLE_DEVICES'])"
    ctk(jobs, "sbatch", "-J", "strange", *options, "--force", "--", "python3", "-s", "-c", report)
    script = (jobs.directory / "strange.sbatch").read_text()
    assert "#SBATCH --gres=gpu:tesla:2" in script
    assert "#SBATCH -p gpu" in script
    job = jobs.submit("strange")
    assert jobs.finish(job) == "COMPLETED", jobs.log(f"strange-{job}")
    assert "OFFLINE 1 0,1" in jobs.log(f"strange-{job}")
    shown = {name: jobs.show(job, name) for name in ("Partition", "NumNodes", "TimeLimit", "TresPerNode")}
    assert shown == {"Partition": "gpu", "NumNodes": "2", "TimeLimit": "00:05:00", "TresPerNode": "gres:gpu:tesla:2"}


# ---- OpenPBS and Torque


@pytest.mark.parametrize("scheduler", [Scheduler.OPENPBS, Scheduler.TORQUE])
def test_profile_of_a_pbs_server_and_its_limits(me: User, ground: Path, tiny_image: Path, scheduler: Scheduler) -> None:
    place = ground / f"pbs-{scheduler}-{time.monotonic_ns()}"
    server = pbs_server(place / "server", scheduler, nodes=("n1", "n2"))
    environment = {**server.environment, "PATH": str(server.programs)}

    def run(*words: str, status: int = 0) -> str:
        done = me.ctk(*words, cwd=place, env=environment, status=status)
        return str(done.stdout + done.stderr)

    run("cluster", "detect", "mine")
    profile = load_profile(place / "sbatch/clusters/mine.toml")
    assert profile.scheduler is scheduler
    assert [
        (found.name, found.is_default, found.max_nodes, found.cores, found.gpus) for found in profile.partitions
    ] == [
        ("workq", True, 2, 8, 4),
        ("gpuq", False, 2, 8, 4),
        ("gpu", False, 2, 8, 4),
    ]
    assert "valid, compared with the scheduler" in run("cluster", "check", "mine")
    job = ("qsub", "-N", "x", "--cluster", "mine", "--image", str(tiny_image), "--partition", "gpu")
    said = run(*job, "--gpus", "0", "--cpus-per-task", "9", "--", "/bin/true", status=2)
    assert "partition gpu has 8 cores on a node" in said, said
    assert not (place / "x.pbs").exists()
    run(*job, "--gpus", "0", "--cpus-per-task", "8", "--", "/bin/true")
    me.run(server.programs / "qsub", "x.pbs", cwd=place, env=environment)


# ---- Grid Engine


@pytest.fixture(scope="module")
def cell(me: User, ground: Path) -> Iterator[GridEngine]:
    yield from running(me, ground / "grid-engine-of-clusters")


def test_profile_of_a_real_grid_engine_and_a_job_that_it_understands(
    cell: GridEngine, ground: Path, base_image: Path
) -> None:
    directory = ground / f"grid-{time.monotonic_ns()}"
    directory.mkdir()
    environment = {**cell.environment, "PATH": str(PROGRAMS)}  # Slurm's programs are elsewhere

    def run(*words: str, status: int = 0) -> str:
        done = cell.user.ctk(*words, cwd=directory, env=environment, status=status)
        return str(done.stdout + done.stderr)

    script = directory / "busy.sh"
    script.write_text("sleep 60\n")
    busy = cell.run("qsub", "-terse", "-cwd", "-l", "gpu=3", "busy.sh", directory=directory).strip()
    eventually(lambda: " r " in cell.run("qstat"), "a job to use GPUs")
    run("cluster", "detect", "grid")
    cell.run("qdel", busy)
    profile = load_profile(directory / "sbatch/clusters/grid.toml")
    assert profile.scheduler is Scheduler.GRID_ENGINE
    limits = {found.name: (found.max_time, found.max_nodes, found.gpus) for found in profile.partitions}
    assert limits == {"all.q": (None, 1, 4), "short.q": (60, 1, 4)}
    assert profile.requests.gpus is not None
    assert profile.requests.cores is not None
    assert (profile.requests.gpus.text, profile.requests.cores.text) == ("-l gpu={count}", "-pe smp {slots}")
    assert "valid, compared with the scheduler" in run("cluster", "check", "grid")

    options = ("qsub", "-N", "x", "--cluster", "grid", "--image", str(base_image), "--force")
    job = ("--gpus", "2", "--cpus-per-task", "3", "--", "true")
    said = run(*options[:-1], "--partition", "short.q", "--time", "1:00:00", *job, status=2)
    assert "partition short.q allows 1 minute, and the job asks for 1 hour" in said
    run(*options, "--partition", "all.q", "--time", "10", *job)
    number = cell.run("qsub", "-terse", "-h", "x.sge", directory=directory).strip().splitlines()[-1]
    details = parse_details(cell.run("qstat", "-j", number))[number]
    cell.run("qdel", number)
    assert requested(details) == {"gpu": "2", "h_rt": "600", "pe": "smp 3"}
    assert details.fields["hard_queue_list"] == "all.q"


def test_gpus_that_a_grid_engine_counts_for_each_slot(cell: GridEngine, ground: Path, base_image: Path) -> None:
    """With a consumable YES, `-l gpu=2 -pe smp 4` would ask for eight GPUs of four, and wait for ever."""
    directory = ground / f"grid-{time.monotonic_ns()}"
    directory.mkdir()
    environment = {**cell.environment, "PATH": str(PROGRAMS)}
    complexes = cell.run("qconf", "-sc")
    counted = re.sub(r"(?m)^(gpu .*) JOB ", r"\1 YES ", complexes)
    assert counted != complexes
    cell.change("-Mc", counted)
    try:
        cell.user.ctk("cluster", "detect", "slots", cwd=directory, env=environment)
        options = ("qsub", "-N", "x", "--cluster", "slots", "--image", str(base_image), "--force", "--gpus", "4")
        refused = cell.user.ctk(*options, "--cpus-per-task", "3", "true", cwd=directory, env=environment, status=2)
        assert "a multiple of the slots of a node" in refused.stderr
        assert not (directory / "x.sge").exists()
        cell.user.ctk(*options, "--cpus-per-task", "2", "true", cwd=directory, env=environment)
        assert "#$ -pe smp 2\n#$ -l gpu=2\n" in (directory / "x.sge").read_text()
        said = cell.run("qsub", "-w", "v", "x.sge", directory=directory)
        assert "found suitable queue" in said
        said = cell.run("qsub", "-w", "v", "-l", "gpu=4", "x.sge", directory=directory, status=1)
        assert "no suitable queues" in said
    finally:
        cell.change("-Mc", complexes)
