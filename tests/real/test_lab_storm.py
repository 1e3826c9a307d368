"""A lab again and again, and a lab whose nodes fail while it works. `make soak` does both in large numbers."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.real.labs import NOTHING, OwnLab, traces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User

pytestmark = pytest.mark.slurm

SEED = int(os.environ.get("CTK_LAB_SEED", "1"))
CYCLES = int(os.environ.get("CTK_LAB_CYCLES", "3"))
JOBS = int(os.environ.get("CTK_LAB_JOBS", "45"))
KILLS = int(os.environ.get("CTK_LAB_KILLS", "3"))
NODES = 16
_MAX_DEAD = 5  # at a time
_TIMEOUT = 600  # seconds


@pytest.fixture
def own(ordinary_user: User, ground: Path) -> Iterator[OwnLab]:
    directory = ground / f"storm-{time.monotonic_ns()}"
    directory.mkdir()
    shutil.chown(directory, ordinary_user.name)
    lab = OwnLab(ordinary_user, directory, f"s{time.monotonic_ns() % 10**9}")
    yield lab
    if lab.name in ordinary_user.ctk("lab", "list", cwd=directory).stdout.split():
        lab.ctk("down")
    subprocess.run(["rm", "-rf", str(directory)], check=True)


def test_up_a_job_and_down_again_and_again(own: OwnLab) -> None:
    before = traces(own)
    times = []
    for _ in range(CYCLES):
        begun = time.monotonic()
        place = own.up()
        assert own.finish(own.submit("exit 3", "--gpus", "tesla:1"))["exit_status"] == 3
        times.append(time.monotonic() - begun)
        own.ctk("down")
        assert traces(own).beyond(before) == NOTHING
        assert not place.exists()
    print(f"{CYCLES} cycles; up to first finished job: {min(times):.1f} to {max(times):.1f} s")


def submit_some(own: OwnLab, chance: random.Random, count: int) -> dict[str, int]:
    """Submit jobs of one to three nodes, with and without GPUs and steps; what each should exit with, by its number."""
    wanted = {}
    for _ in range(count):
        status = chance.choice([0, 0, 0, 7])
        step = chance.choice(["", "srun true\n"])
        script = f"echo run ${{SLURM_RESTART_COUNT:-0}}\n{step}sleep {chance.uniform(0.2, 12):.1f}\nexit {status}"
        gpus = chance.choice([(), ("--gpus-per-node", "tesla:1")])
        wanted[own.submit(script, "--nodes", str(chance.choice([1, 1, 1, 2, 3])), *gpus, "--output=%j.log")] = status
    return wanted


def storm(own: OwnLab, chance: random.Random) -> dict[str, int]:
    """Submit jobs, and let nodes fail under them and come back, until so many have failed and all are back."""
    wanted: dict[str, int] = {}
    dead: list[str] = []
    killed = 0
    while dead or killed < KILLS:
        time.sleep(chance.uniform(0, 2))
        if killed < KILLS and len(dead) < _MAX_DEAD and (not dead or chance.random() < 0.6):
            wanted |= submit_some(own, chance, JOBS // KILLS)
            alive = [node for node in own.status()["nodes"] if node["name"] not in dead]
            node = chance.choice([node for node in alive if node["cpus_used"]] or alive)["name"]
            own.ctk("kill-node", node)
            dead.append(node)
            killed += 1
        else:
            # Some are away for a moment, others until the controller has missed them.
            time.sleep(chance.choice([0, 0, 20]))
            own.ctk("restore-node", dead.pop(chance.randrange(len(dead))))
    return wanted


def test_nodes_fail_at_random_and_every_job_ends(own: OwnLab) -> None:
    chance = random.Random(SEED)  # noqa: S311
    begun = time.monotonic()
    own.up("--nodes", str(NODES))
    wanted = storm(own, chance)
    while own.run("squeue", "--noheader"):
        assert time.monotonic() - begun < _TIMEOUT, own.run("squeue", "--long")
        time.sleep(1)

    runs: dict[str, list[dict[str, object]]] = {job: [] for job in wanted}
    for run in own.status()["finished"]:
        runs[run["job"]].append(run)
    for job, status in wanted.items():
        *earlier, last = runs[job]
        assert {run["state"] for run in earlier} <= {"NODE_FAIL", "REQUEUED"}, runs[job]
        assert (last["state"], last["exit_status"]) == ("FAILED" if status else "COMPLETED", status), runs[job]
        assert "run " in (own.directory / f"{job}.log").read_text()
    again = sum(len(found) > 1 for found in runs.values())
    assert again, "a node was lost under a job at least once"
    assert Counter(node["state"] for node in own.status()["nodes"]) == {"idle": NODES}
    seconds = time.monotonic() - begun
    print(f"seed {SEED}: {len(wanted)} jobs, {NODES} nodes, {KILLS} failures, {again} jobs ran again, {seconds:.0f} s")
