"""A Slurm as sites run it: daemons of root, jobs of users, and the tracking of processes that is asked for."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.conftest import PracticeCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import User

_NODES = ("n1", "n2")
KILL_WAIT = 10  # seconds between SIGTERM and SIGKILL
_FREEZER = Path("/sys/fs/cgroup/freezer")


def tracking_of_sites() -> str:
    """`cgroup` where this machine lets root make cgroups (version 1, as Slurm 22.05 needs it without systemd)."""
    return "cgroup" if os.access(_FREEZER / "cgroup.procs", os.W_OK) else "pgid"


def _ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def _configuration(directory: Path, tracking: str) -> str:
    host = socket.gethostname().partition(".")[0]
    controller, *ports = _ports(1 + len(_NODES))
    settings = {
        "ClusterName": f"site-{tracking}",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmctldPort": controller,
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={directory}/munge.socket,cred_expire=20",
        "StateSaveLocation": directory / "state",
        "SlurmdSpoolDir": f"{directory}/spool-%n",
        "TmpFS": f"{directory}/tmp-%n",
        "SlurmctldPidFile": directory / "slurmctld.pid",
        "SlurmdPidFile": f"{directory}/slurmd-%n.pid",
        "SlurmctldLogFile": directory / "slurmctld.log",
        "SlurmdLogFile": f"{directory}/%n.log",
        "ProctrackType": f"proctrack/{tracking}",
        "TaskPlugin": "task/cgroup" if tracking == "cgroup" else "task/none",
        "MpiDefault": "none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": 250,
        "SlurmdParameters": "config_overrides",
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=5",
        "JobCompType": "jobcomp/none",
        "AccountingStorageType": "accounting_storage/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "KillWait": KILL_WAIT,
        "JobRequeue": 1,
        "ReturnToService": 2,
        "MailProg": "/bin/true",
    }
    lines = [f"{key}={value}" for key, value in settings.items()]
    lines += [
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=64 RealMemory=16000"
        for node, port in zip(_NODES, ports, strict=True)
    ]
    return "\n".join([*lines, "PartitionName=cpu Nodes=ALL Default=YES MaxTime=1-0 State=UP", ""])


@contextmanager
def site(ground: Path, tracking: str, user: User) -> Iterator[PracticeCluster]:
    """A running cluster for `user`, with `tracking` (cgroup, pgid or linuxproc); nothing of it stays behind."""
    directory = ground / f"site-{tracking}"
    for name in ("state", *(f"spool-{node}" for node in _NODES)):
        (directory / name).mkdir(parents=True, mode=0o755)
    for node in _NODES:
        (directory / f"tmp-{node}").mkdir()
        (directory / f"tmp-{node}").chmod(0o1777)
    (directory / "munge.key").write_bytes(os.urandom(128))
    (directory / "munge.key").chmod(0o600)
    configuration = directory / "slurm.conf"
    configuration.write_text(_configuration(directory, tracking))
    (directory / "cgroup.conf").write_text(
        "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=yes\n"
    )
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    munge = [
        f"--{name}={directory}/munge.{name.removesuffix('-file')}" for name in ("key-file", "pid-file", "seed-file")
    ]
    daemons = [
        ["munged", "-F", "--force", *munge, f"--socket={directory}/munge.socket", f"--log-file={directory}/munged.log"],
        ["slurmctld", "-D", "-i"],
        *(["slurmd", "-D", "-N", node] for node in _NODES),
    ]
    running: list[subprocess.Popen[bytes]] = []
    try:
        for argv in daemons:
            with (directory / "daemons.out").open("ab") as output:
                running.append(subprocess.Popen(argv, env=environment, stdout=output, stderr=output))
            if argv[0] == "munged":
                _wait_for(directory / "munge.socket")
        _wait_until_idle(environment)
        yield PracticeCluster(user, {"SLURM_CONF": str(configuration)})
    finally:
        _end_jobs(user, environment)
        for daemon in reversed(running):
            daemon.send_signal(signal.SIGTERM)
        for daemon in running:
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:  # a slurmd waits for jobs that a failed test left
                daemon.kill()


def _end_jobs(user: User, environment: dict[str, str]) -> None:
    """End what a failed test left, so that no job outlives its cluster."""
    deadline = time.monotonic() + 60
    asked = ["squeue", "-h", "-u", user.name]
    while subprocess.run(asked, env=environment, capture_output=True, check=False).stdout:
        subprocess.run(["scancel", "-u", user.name], env=environment, check=False)
        if time.monotonic() > deadline:
            break
        time.sleep(1)


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"waited for {path}"
        time.sleep(0.1)


def _wait_until_idle(environment: dict[str, str]) -> None:
    deadline = time.monotonic() + 60
    while True:
        asked = ["sinfo", "-h", "-t", "idle", "-o", "%D"]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
        if done.stdout.strip() == str(len(_NODES)):
            return
        assert time.monotonic() < deadline, done.stdout + done.stderr
        time.sleep(0.2)
