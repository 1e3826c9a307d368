"""`ctk lab` with the distribution's own Slurm, as root and as an ordinary user."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from tests.real.labs import NOTHING, OwnLab, eventually, traces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User

pytestmark = pytest.mark.slurm


@pytest.fixture
def own(user: User, directory: Path) -> Iterator[OwnLab]:
    """A lab that is not up yet; whatever a test leaves of it is cleaned away."""
    lab = OwnLab(user, directory, f"t{time.monotonic_ns() % 10**9}")
    yield lab
    if lab.name in user.ctk("lab", "list", cwd=directory, env=lab.settings).stdout.split():
        lab.ctk("down")


# A job that tries to outlive its lab: in a session of its own, without its environment, without its parents.
STUBBORN = """
setsid sleep 987 & echo $! >> pids
(env -i setsid sleep 987 & echo $! >> pids)
trap '' TERM
echo $$ >> pids
sleep 987
"""


def test_from_nothing_to_a_job_and_back_to_nothing(own: OwnLab) -> None:
    before = traces(own)
    place = own.up("--nodes", "4", "--gpus-per-node", "2")
    job = own.submit("echo hello from $SLURMD_NODENAME; exit 3", "--output", "first.log")
    assert own.finish(job)["exit_status"] == 3
    assert re.fullmatch(r"hello from n[1-4]\n", (own.directory / "first.log").read_text())
    assert len(own.run("srun", "-N4", "hostname").split()) == 4

    own.submit(STUBBORN)
    pids = own.directory / "pids"
    eventually(lambda: pids.exists() and len(pids.read_text().split()) == 3, "the stubborn job")
    mine = frozenset(map(int, pids.read_text().split()))
    there = traces(own, place, mine)
    assert len(there.processes) >= 4 + 2 + 1 + 3, "slurmd, munged, slurmctld, slurmstepd, the job"
    assert str(place / "munge.socket") in there.sockets
    assert all("127.0.0.1" in words for words in there.sockets if "addr" in words), "nobody outside can knock"
    own.ctk("down")
    assert traces(own, place, mine).beyond(before) == NOTHING


def test_jobs_meet_what_they_meet_on_a_real_site(own: OwnLab, tiny_image: Path) -> None:
    own.up("--nodes", "2", "--gpus-per-node", "2")
    check = (str(own.user.program), "check-gpu", str(tiny_image), "--framework", "none")
    rows = own.run("srun", "--nodes", "2", *check, status=None).splitlines()
    assert [row.split(": ")[:2] for row in sorted(rows)] == [["n1", "no-gpu-on-host"], ["n2", "no-gpu-on-host"]]
    long = own.submit("true", "--partition", "debug", "--time", "10")
    wide = own.submit("true", "--partition", "debug", "--nodes", "2", "--time", "1")
    lost = own.submit("true", "--output", "no/such/directory/x.log", "--job-name", "a b")
    tasks = own.submit("exit $SLURM_ARRAY_TASK_ID", "--array", "0-1")
    shown = "echo GPUS=$CUDA_VISIBLE_DEVICES; sleep 3"
    first = own.submit(shown, "--gpus", "tesla:1", "--nodelist", "n2", "--output", "gpu-1.log")
    second = own.submit(shown, "--gpus", "tesla:1", "--nodelist", "n2", "--output", "gpu-2.log")
    refused = own.user.run(
        "sbatch", "--gpus-per-node=3", "--wrap", "true", cwd=own.directory, env=own.environment, status=1
    )
    assert "Requested node configuration is not available" in refused.stderr

    assert own.finish(lost) | {"state": "FAILED", "exit_status": 0, "signal": 53, "name": "a b"} == own.finish(lost)
    assert "Could not open stdout file" in own.ctk("logs", own.finish(lost)["nodes"])
    for job in (first, second):
        assert own.finish(job)["state"] == "COMPLETED"
        assert own.finish(job)["nodes"] == "n2"
    devices = {(own.directory / f"gpu-{number}.log").read_text() for number in (1, 2)}
    assert devices == {"GPUS=0\n", "GPUS=1\n"}, "side by side on one node, each with its own"
    assert [own.finish(f"{tasks}_{task}")["exit_status"] for task in (0, 1)] == [0, 1]
    waiting = {job["job"]: job["where"] for job in own.status()["queue"]}
    assert waiting == {long: "(PartitionTimeLimit)", wide: "(PartitionNodeLimit)"}


def test_what_a_user_sees_of_a_lab(own: OwnLab) -> None:
    assert "there is no lab" in own.ctk("status", status=2)
    place = own.up("--nodes", "2", "--gpus-per-node", "1")
    table = own.ctk("status")
    assert "n2\tidle\t0/4\t0/1" in table
    assert own.name in own.user.ctk("lab", "list", cwd=own.directory).stdout
    assert f"the lab '{own.name}' is up" in own.ctk("up", status=2)
    exported = own.ctk("env")
    shown = own.run("bash", "-c", f"unset SLURM_CONF; eval '{exported}'; scontrol ping")
    assert "is UP" in shown
    inside = own.user.run(
        *(own.user.program, "lab", "shell", "--name", own.name),
        cwd=own.directory,
        env={"SHELL": "/bin/sh"},
        input="sinfo --noheader --format=%N --Node --partition=gpu; exit 7\n",
        status=7,
    )
    assert sorted(inside.stdout.split()) == ["n1", "n2"]
    assert "slurmctld version" in own.ctk("logs", "slurmctld", "--lines", "1000")
    assert "no daemon 'slurmctl'. Did you mean \"slurmctld\"?" in own.ctk("logs", "slurmctl", status=2)
    assert "has no node 'n3'" in own.ctk("kill-node", "n3", status=2)
    assert str(place).startswith("/tmp/")


def test_modules_are_loaded_in_a_job_script(own: OwnLab) -> None:
    own.up("--nodes", "1", "--gpus-per-node", "0")
    words = ("module load apptainer openmpi", "module list", "command -v apptainer mpirun")
    job = own.submit("\n".join([*words, "apptainer --version", "mpirun --version"]), "--output=modules.log")
    assert own.finish(job)["state"] == "COMPLETED"
    log = (own.directory / "modules.log").read_text()
    assert re.search(r"apptainer/\d\S* .*openmpi/\d", log), log
    assert log.count("/software/") == 2, "the programs of the modules come first on PATH"
    assert "apptainer version" in log
    assert "(Open MPI)" in log


def test_gpus_of_the_machine_are_refused_where_there_is_none(own: OwnLab) -> None:
    assert "this machine has no GPU" in own.ctk("up", "--real-gpus", status=3)


def test_a_real_cluster_is_not_surprised(own: OwnLab) -> None:
    conf = own.directory / "slurm.conf"
    conf.write_text("ClusterName=alps\n")
    own.settings["SLURM_CONF"] = str(conf)
    refusal = own.ctk("up", status=2)
    assert 'this machine belongs to a cluster: Slurm cluster "alps"' in refusal
    assert "--force" in refusal
    own.up("--nodes", "1", "--force")
    assert own.run("sinfo", "--noheader", "--format=%N", "--partition=cpu").strip() == "n1"


def test_without_the_packages_one_line_says_which(own: OwnLab, tmp_path: Path) -> None:
    """A host without Slurm: its directories are hidden from ctk by a PATH that lacks them, and by a root that does."""
    hidden = 'mount -t tmpfs none /usr/sbin && exec "$@"'
    words = own.user.run(
        *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hidden, "sh"),
        *(own.user.program, "lab", "up", "--json"),
        cwd=own.directory,
        status=3,
    )
    assert "missing on this host: munged, slurmctld, slurmd" in words.stderr
    assert "apt-get install slurmctld slurmd slurm-client munge" in words.stderr
    assert json.loads(words.stdout)["findings"][0]["code"] == "missing-on-host"
