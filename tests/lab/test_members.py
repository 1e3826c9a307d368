"""Only the processes of a lab are found and killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from toolkit.lab import supervisor as supervisor
from toolkit.lab.members import (
    DAEMON_VARIABLE,
    DIRECTORY_VARIABLE,
    SUPERVISOR,
    Member,
    Role,
    find_members,
    kill,
    kill_all,
    mark,
)
from toolkit.lab.paths import LabPaths

if TYPE_CHECKING:
    from collections.abc import Iterator

    Started = list[subprocess.Popen[bytes]]

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> LabPaths:
    return LabPaths(tmp_path / "ctk-lab-abcdefgh")


@pytest.fixture
def started() -> Iterator[Started]:
    processes: Started = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def start(started: Started, *argv: str, cwd: Path | None = None, **environment: str) -> int:
    process = subprocess.Popen(argv, env={"PATH": os.defpath, **environment}, cwd=cwd)
    started.append(process)
    return process.pid


def found(place: LabPaths) -> dict[int, tuple[Role, str]]:
    return {member.process.pid: (member.role, member.part) for member in find_members(place)}


def test_who_belongs_to_a_lab(place: LabPaths, tmp_path: Path, started: Started) -> None:
    conf = str(place.slurm_conf)
    place.spool("n2").mkdir(parents=True)
    shutil.copy("/bin/sleep", tmp_path / "slurmstepd")
    daemon = start(started, "sleep", "60", **{DIRECTORY_VARIABLE: str(place.directory), DAEMON_VARIABLE: "n1"})
    step = start(started, str(tmp_path / "slurmstepd"), "60", cwd=place.spool("n2"))
    job = start(started, "sleep", "60", SLURM_CONF=conf, SLURMD_NODENAME="n3", SLURM_JOB_ID="1")
    # A user's own shell, an salloc, another lab's daemon, a job of another cluster, another lab's step.
    start(started, "sleep", "60", SLURM_CONF=conf)
    start(started, "sleep", "60", SLURM_CONF=conf, SLURM_JOB_ID="1")
    start(started, "sleep", "60", **{DIRECTORY_VARIABLE: f"{place.directory}2", DAEMON_VARIABLE: "n1"})
    start(started, "sleep", "60", SLURM_CONF="/etc/slurm/slurm.conf", SLURMD_NODENAME="n3")
    start(started, str(tmp_path / "slurmstepd"), "60", cwd=tmp_path)
    assert found(place) == {daemon: (Role.DAEMON, "n1"), step: (Role.JOB, "n2"), job: (Role.JOB, "n3")}


def test_a_child_that_cleared_its_environment_belongs_too(place: LabPaths, started: Started) -> None:
    script = "env -i sleep 60 & echo $!; wait"
    environment = {"SLURM_CONF": str(place.slurm_conf), "SLURMD_NODENAME": "n1", "PATH": os.defpath}
    parent = subprocess.Popen(["sh", "-c", script], env=environment, stdout=subprocess.PIPE)
    started.append(parent)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert found(place) == {parent.pid: (Role.JOB, "n1"), child: (Role.JOB, "n1")}
    kill(find_members(place))
    assert found(place) == {}
    assert not Path(f"/proc/{child}").exists()


def test_an_orphan_that_cleared_its_environment_is_its_supervisor_s(
    place: LabPaths, tmp_path: Path, started: Started
) -> None:
    """Its parent is gone and its environment is empty: nothing but the supervisor tells whose it is, or the mark."""
    own, orphan, daemon = supervisor_with_an_orphan(place, tmp_path, started)
    assert orphan.ppid() == own.pid
    assert found(place)[orphan.pid] == (Role.JOB, "")
    psutil.Process(daemon).kill()
    assert orphan.is_running(), "the supervisor stays while there is somebody to keep"
    kill_all(place)
    assert found(place) == {}
    assert own.wait(5) == 0
    assert not orphan.is_running()


def test_a_parent_does_not_learn_that_its_child_was_killed(tmp_path: Path, started: Started) -> None:
    """The process ID of a step may be above that of its script, which is then killed first."""
    script = "sleep 60 & echo $! > part; mv part child; wait; echo reported > report"
    parent = subprocess.Popen(["sh", "-c", script], cwd=tmp_path)
    started.append(parent)
    while not (tmp_path / "child").exists():
        time.sleep(0.01)
    child = psutil.Process(int((tmp_path / "child").read_text()))
    kill(Member(process, Role.JOB, "node1") for process in (child, *[child] * 2000, psutil.Process(parent.pid)))
    assert not (tmp_path / "report").exists()


def test_an_orphan_is_found_when_its_supervisor_was_killed(place: LabPaths, tmp_path: Path, started: Started) -> None:
    own, orphan, daemon = supervisor_with_an_orphan(place, tmp_path, started)
    own.kill()
    own.wait()
    assert orphan.ppid() != own.pid
    assert set(found(place)) == {orphan.pid, daemon, *(child.pid for child in psutil.Process(daemon).children())}
    assert found(LabPaths(tmp_path / "ctk-other-abcdefgh")) == {}, "another lab's mark is another one"
    kill_all(place)
    assert found(place) == {}
    assert not orphan.is_running()


def supervisor_with_an_orphan(
    place: LabPaths, tmp_path: Path, started: Started
) -> tuple[subprocess.Popen[bytes], psutil.Process, int]:
    """A supervisor without further orders, an orphan with an empty environment, and the process number of a daemon."""
    argv = [sys.executable, "-I", "-S", supervisor.__file__, str(mark(place))]
    environment = {DIRECTORY_VARIABLE: str(place.directory), DAEMON_VARIABLE: SUPERVISOR}
    own = subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    started.append(own)
    assert own.stdin is not None
    assert own.stdout is not None
    script = f"(env -i setsid sleep 60 & echo $! > {tmp_path}/orphan); sleep 60"
    order = {"argv": ["sh", "-c", script], "env": {"PATH": os.defpath}, "cwd": "/", "output": f"{tmp_path}/output"}
    own.stdin.write(json.dumps(order).encode() + b"\n")
    own.stdin.flush()
    daemon = int(own.stdout.readline())
    while not (number := (tmp_path / "orphan").read_text() if (tmp_path / "orphan").exists() else ""):
        time.sleep(0.02)
    own.stdin.close()
    return own, psutil.Process(int(number)), daemon
