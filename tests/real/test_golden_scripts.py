"""Each golden script runs: on a real Slurm, a real Grid Engine, and the emulations of OpenPBS and Torque.

Only paths are other ones, of the image and of what a site has: data, modules, a runtime. Grid Engine and PBS start
their jobs on nodes with a stand-in of the GPU driver, and the processes of several nodes with a real mpirun, whose
remote shell has this machine for every node.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.driver import compile_driver
from tests.jobs.dialects.golden import GOLDEN, GRID_ENGINE_JOBS, OPENPBS_JOBS, SCRIPTS, SLURM_JOBS, TORQUE_JOBS
from tests.real.gpu_nodes import driver_shim
from tests.real.grid_engine import GridEngine, running
from tests.real.labs import eventually
from tests.real.pbs import pbs_server
from toolkit.scheduler.programs import Scheduler, query, submitted_job
from toolkit.scheduler.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import PracticeCluster, User
    from toolkit.jobs.model import Job

_TRAIN = """\
import json, os, sys
data = "/data/numbers.txt"
names = ("GREETING", "WANDB_API_KEY", "TOKEN", "OMP_NUM_THREADS", "PYTHONNOUSERSITE")
got = {name: os.environ.get(name) for name in names}
got["rank"] = os.environ.get("SLURM_PROCID") or os.environ.get("OMPI_COMM_WORLD_RANK")
got["node"] = os.environ.get("SLURMD_NODENAME") or os.environ.get("NODE")
got["data"] = open(data).read() if os.path.exists(data) else None
got["read-only"] = not os.access("/data", os.W_OK)
got["words"] = sys.argv[1:]
os.write(1, f"GOT {json.dumps(got)}\\n".encode())
"""
_MODULES = """\
module() { echo "module $*"; }
"""
# What `ssh NODE COMMAND` does: a new environment in the home directory, on a node that is this machine.
_REMOTE_SHELL = """\
#!/bin/sh
cd "$HOME" && node=$1 && shift
tmp=$(mktemp -d) # of each node its own, as nodes have: Open MPI makes its directories there
env -i HOME="$HOME" PATH="{bin}:/usr/bin:/bin" NODE="$node" TMPDIR="$tmp" /bin/sh -c "$*"
status=$?
rm -rf "$tmp"
exit "$status"
"""
_NODE = """\
export PATH="{bin}:/usr/bin:/bin" OMPI_MCA_plm_rsh_agent={bin}/remote-shell OMPI_MCA_plm_rsh_disable_qrsh=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"""
# Of a site with a resource type for whole nodes, which are two here.
_STARTER = """\
#!/bin/bash
{node}
if [ "$QUEUE" = gpu.q ]; then export PE_HOSTFILE={bin}/hosts; fi
exec "${{SGE_STARTER_SHELL_PATH:-/bin/bash}}" "$@"
"""


@pytest.fixture(scope="module")
def golden_image(ground: Path, me: User, python_directory: Path) -> Path:
    """A Python, as `python` too, and the programs of the golden commands."""
    root = ground / "golden-root"
    subprocess.run(["cp", "-al", python_directory, root], check=True)
    (root / "usr/bin/python").symlink_to("python3")
    for name in ("true", "env"):
        (root / "bin" / name).symlink_to("busybox")
    image = ground / "golden.sif"
    me.run("apptainer", "build", "--fakeroot", image, root, cwd=ground)
    image.chmod(0o644)
    return image


@pytest.fixture
def place(ground: Path, golden_image: Path) -> Path:
    """A directory with all that the golden scripts name."""
    directory = ground / f"golden-{time.monotonic_ns()}"
    for name in ("my data", "apptainer 1.4/bin"):
        (directory / name).mkdir(parents=True)
    (directory / "trial.sif").symlink_to(golden_image)
    (directory / "train.py").write_text(_TRAIN)
    (directory / "my data/numbers.txt").write_text("1 2 3\n")
    (directory / "apptainer 1.4/bin/apptainer").symlink_to("/usr/bin/apptainer")
    (directory / "modules.sh").write_text(_MODULES)
    (directory / "secrets.env").write_text("TOKEN=x'y z\n")
    (directory / "secrets.env").chmod(0o600)
    return directory


@pytest.fixture(scope="module")
def node_programs(ground: Path) -> Path:
    """The directory of a node's programs: a stand-in driver, and the remote shell of mpirun."""
    directory = ground / "golden-node/bin"
    directory.mkdir(parents=True)
    shim = driver_shim(compile_driver(directory / "driver", FAKE_CUDA_COUNT="2"))
    for name, text in (("ldconfig.real", shim), ("remote-shell", _REMOTE_SHELL.format(bin=directory))):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    (directory / "hosts").write_text("n1 4 gpu.q@n1 UNDEFINED\nn2 4 gpu.q@n2 UNDEFINED\n")
    return directory


def write(name: str, directory: Path) -> Path:
    """The golden script of that name with the paths of `directory`."""
    text = (GOLDEN / name).read_text()
    for path, own in (
        ("/apps/images/trial.sif", "trial.sif"),
        ("/scratch/my data", "my data"),
        ("/opt/apptainer 1.4", "apptainer 1.4"),
        ("/etc/profile.d/modules.sh", "modules.sh"),
    ):
        text = text.replace(path, str(directory / own))
    script = directory / name
    script.write_text(text)
    return script


@dataclass(frozen=True)
class Run:
    """A golden job that has ended: the logs of its tasks, in order, or its one log."""

    job: Job
    logs: tuple[str, ...]

    @property
    def got(self) -> list[dict[str, Any]]:
        """What the program printed, of each process by its rank."""
        found = [json.loads(line) for line in re.findall(r"GOT (\{.*?\})$", self.logs[0], re.MULTILINE)]
        return sorted(found, key=lambda one: one["rank"] or "")


def run(name: str, user: User, directory: Path, environment: dict[str, str]) -> Run:
    """Submit the golden script as a user does, with plain sbatch or qsub, and wait until all of it has ended well."""
    scheduler, job = SCRIPTS[name]
    script = write(name, directory)
    subprocess.run(["chown", "-R", user.name, directory], check=True)
    whole = {**user.environment, **environment, "WANDB_API_KEY": "k3y"}
    program = ["sbatch", "--parsable"] if scheduler is Scheduler.SLURM else ["qsub"]
    program += ["-terse"] if scheduler is Scheduler.GRID_ENGINE else []
    printed = user.run(*program, script.name, cwd=directory, env=whole).stdout
    number = submitted_job(scheduler, printed)
    tasks = (
        [task for some in job.array.ranges for task in range(some.first, some.last + 1, some.step)] if job.array else []
    )

    def ended() -> bool:
        states = query(scheduler, [number], env=whole)[number]
        return len(states) == (len(tasks) or 1) and all(state.state.is_final for state in states)

    try:
        eventually(ended, f"{name} to end", 90)
    finally:
        stem = re.split(r"[.\[]", number)[0]
        names = [f"{job.name}-{stem}_{task}.log" for task in tasks] or [f"{job.name}-{stem}.log"]
        logs = tuple(_read(directory / "logs" / log) for log in names)
    states = query(scheduler, [number], env=whole)[number]
    assert {state.state for state in states} == {State.COMPLETED}, "\n".join(logs)
    # Grid Engine leaves an empty file of that name for a parallel environment.
    assert not [path for path in directory.glob("*.log") if path.stat().st_size], "every log is in logs/"
    for log in logs:
        assert "ended with status 0\n" in log, log
    return Run(job, logs)


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def check(done: Run) -> None:
    """That the program had what the job asks for: each process its words, variables, data and number."""
    job = done.job
    if job.command[0] != "python":
        return
    log, got = done.logs[0], done.got
    assert len(got) == job.tasks, log
    for one in got:
        assert one["words"] == list(job.command[2:])
        assert one["GREETING"] == dict(job.environment).get("GREETING")
        assert one["PYTHONNOUSERSITE"] == "1"
        alone = len(os.sched_getaffinity(0)) if job.requests.resources else 1  # all cores of a unit
        assert one["OMP_NUM_THREADS"] == str(job.cpus_per_task or alone)
        assert (one["data"], one["read-only"]) == (("1 2 3\n", True) if job.binds else (None, True))
        assert one["WANDB_API_KEY"] == ("k3y" if job.inherited else one["WANDB_API_KEY"])
        assert one["TOKEN"] == ("x'y z" if job.env_file else None)
    if job.tasks > 1:
        assert [one["rank"] for one in got] == [str(rank) for rank in range(job.tasks)]
        nodes = [one["node"] for one in got]
        each = job.tasks_per_node or 1
        assert {nodes.count(node) for node in nodes} == {each}, nodes
    if job.gate and job.uses_gpu:
        assert re.search(r"^ctk\[\w{12}\]: GPU gate: ", log, re.MULTILINE), log


# ---- Slurm


@pytest.fixture(scope="module")
def open_lab(lab: PracticeCluster, ground: Path) -> Iterator[PracticeCluster]:
    """The practice cluster with partitions for jobs of more than a day."""

    def set_limit(text: str) -> None:
        for partition in ("cpu", "gpu"):
            words = ("scontrol", "update", f"PartitionName={partition}", f"MaxTime={text}")
            lab.user.run(*words, cwd=ground, env=lab.environment)

    set_limit("UNLIMITED")
    yield lab
    set_limit("1-00:00:00")


@pytest.mark.parametrize("name", SLURM_JOBS)
def test_golden_script_of_slurm_runs(open_lab: PracticeCluster, place: Path, name: str) -> None:
    done = run(f"{name}.sbatch", open_lab.user, place, open_lab.environment)
    check(done)
    if name == "plain":
        assert "stand-in GPU, not checked\n" in done.logs[0]
    if name == "monitor":
        assert re.search(r"GPU monitor: n\d: stand-in GPU, not measured\n", done.logs[0]), done.logs[0]


# ---- Grid Engine


@pytest.fixture(scope="module")
def cell(ordinary_user: User, ground: Path, node_programs: Path) -> Iterator[GridEngine]:
    """A cell whose nodes have a driver, and a queue of whole nodes."""
    place = ground / "grid-engine-of-golden"
    place.mkdir(mode=0o755)
    subprocess.run(["chown", ordinary_user.name, place], check=True)
    for found in running(ordinary_user, place):
        starter = node_programs / "starter"
        starter.write_text(_STARTER.format(node=_NODE.format(bin=node_programs), bin=node_programs))
        starter.chmod(0o755)
        found.run("qconf", "-mattr", "queue", "starter_method", str(starter), "all.q")
        found.change("-Aq", found.run("qconf", "-sq", "all.q").replace("all.q", "gpu.q"))
        yield found


@pytest.mark.parametrize("name", GRID_ENGINE_JOBS)
def test_golden_script_of_grid_engine_runs(cell: GridEngine, place: Path, name: str) -> None:
    done = run(f"{name}.sge", cell.user, place, cell.environment)
    check(done)
    log = done.logs[0]
    if name == "plain":
        assert re.search(r"GPU gate: \S+: usable GPUs: 1\n", log), log
    if name == "full":  # a module, and a framework that computes on each of two nodes
        assert "\nmodule load cuda/12.4\n" in log
        assert len(re.findall(r"GPU gate: \S+: usable GPUs: 2; it computes\n", log)) == 2, log
    if name == "slots":
        assert re.search(r"^ctk\[\w{12}\]: GPU 1 on \S+: ", log, re.MULTILINE), log


# ---- OpenPBS and Torque


@pytest.mark.parametrize("name", [*(f"{job}.pbs" for job in OPENPBS_JOBS), *(f"{job}.torque" for job in TORQUE_JOBS)])
def test_golden_script_of_pbs_runs(ordinary_user: User, place: Path, node_programs: Path, name: str) -> None:
    home = place.with_name(f"{place.name}-server")
    server = pbs_server(home, SCRIPTS[name][0], nodes=("n1", "n2"))
    gate = "export CTK_GATE_GPUS=2\n" if name == "node.torque" else ""  # the stand-in driver shows two of its four
    (home / ".profile").write_text(f"{_NODE.format(bin=node_programs)}{gate}PATH={server.programs}:$PATH\n")
    subprocess.run(["chown", "-R", ordinary_user.name, home], check=True)
    done = run(name, ordinary_user, place, server.environment)
    check(done)
    log = done.logs[0]
    if name.startswith("plain"):
        assert re.search(r"GPU gate: \S+: usable GPUs: 1\n", log), log
    if name == "full.pbs":
        assert "]: nodes n1,n2, " in log
        assert len(re.findall(r"GPU gate: \S+: usable GPUs: 2\n", log)) == 2, log
    for spooled in re.findall(r"what PBS itself says comes to (\S+) when", "".join(done.logs)):
        assert (place / spooled).is_file()
