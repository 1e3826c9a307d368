"""The processes of a lab: its daemons, their job steps, and what jobs have started. No other processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psutil

    from toolkit.lab.paths import LabPaths

# The daemons are started with these variables. The directory's name is random, so it identifies one lab.
DIRECTORY_VARIABLE = "CTK_LAB_DIRECTORY"
DAEMON_VARIABLE = "CTK_LAB_DAEMON"

SUPERVISOR = "supervisor"

_TIMEOUT = 30.0  # seconds


class Role(Enum):
    """What a process is to its lab."""

    SUPERVISOR = "supervisor"
    DAEMON = "daemon"
    JOB = "job"  # a job step, or what it has started


@dataclass(frozen=True, slots=True)
class Member:
    """A running process of a lab. `part` is munged, slurmctld, supervisor, or its node; empty if unknown."""

    process: psutil.Process
    role: Role
    part: str


def find_members(place: LabPaths) -> list[Member]:
    """Every running process of a lab.

    A daemon is known by its environment. slurmstepd overwrites its own with its title, but its directory is that of the
    slurmd that started it. A job's process is known by what slurmstepd put into its environment. Whatever else is
    below them or below a supervisor, or has the lab's mark, belongs too: containers and other processes that cleared
    their environment, and those whose supervisor was killed.
    """
    import psutil

    found: dict[int, Member] = {}
    marked: dict[int, Member] = {}
    children: dict[int, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            children.setdefault(process.ppid(), []).append(process)
            if _has_mark(process, place):
                marked[process.pid] = Member(process, Role.JOB, "")
            if (member := _recognise(process, place)) is not None:
                found[process.pid] = member
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it has just exited, or belongs to another user
    parents = list(found.values())
    while parents:
        parent = parents.pop()
        for child in children.get(parent.process.pid, ()):
            if child.pid not in found:
                orphan = parent.role is Role.SUPERVISOR
                found[child.pid] = Member(child, Role.JOB, "") if orphan else Member(child, parent.role, parent.part)
                parents.append(found[child.pid])
    return list((marked | found).values())  # an entry of `found` also has the node


def mark(place: LabPaths) -> int:
    """The limit RLIMIT_RTTIME, in microseconds, that every process of a lab inherits, and no other process."""
    return (1 << 60) + int.from_bytes(hashlib.sha256(os.fsencode(place.directory)).digest()[:7], "big")


def _has_mark(process: psutil.Process, place: LabPaths) -> bool:
    """Whether a process of this user has the lab's mark. Other users could set it for their own processes.

    It can be read when the environment cannot: for a process in its own user namespace, as in a container.
    """
    if process.uids().real != os.getuid():
        return False
    try:
        limits = Path(f"/proc/{process.pid}/limits").read_text()
    except OSError:
        return False
    return re.search(rf"^Max realtime timeout +{mark(place)} ", limits, re.MULTILINE) is not None


def _recognise(process: psutil.Process, place: LabPaths) -> Member | None:
    if process.name() == "slurmstepd":
        directory = Path(process.cwd())
        return Member(process, Role.JOB, directory.name) if directory == place.spool(directory.name) else None
    environment = process.environ()
    if environment.get(DIRECTORY_VARIABLE) == str(place.directory):
        part = environment.get(DAEMON_VARIABLE, "")
        return Member(process, Role.SUPERVISOR if part == SUPERVISOR else Role.DAEMON, part)
    if "SLURMD_NODENAME" in environment and environment.get("SLURM_CONF") == str(place.slurm_conf):
        return Member(process, Role.JOB, environment["SLURMD_NODENAME"])
    return None


def kill(members: Iterable[Member]) -> None:
    """Kill processes at once; return when they have exited, or after five seconds.

    All are stopped before the first is killed: a job step that outlived its script for a moment would report that
    the job failed. psutil compares the start time before the signal, so a process that reuses a process ID is not
    killed.
    """
    import psutil

    processes = [member.process for member in members]
    for signal_process in (psutil.Process.suspend, psutil.Process.kill):
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                signal_process(process)
    psutil.wait_procs(processes, timeout=5)


def kill_all(place: LabPaths) -> None:
    """Kill every process of a lab, however it was started. Its daemons save nothing: the files are removed next.

    A supervisor exits after its last child, so once the supervisors are gone, no process is left. Raises ProgramFailed
    if a process does not exit, for example because it waits for a failed disk or changed its user.
    """
    import psutil

    deadline = time.monotonic() + _TIMEOUT
    while members := find_members(place):
        others = [member for member in members if member.role is not Role.SUPERVISOR]
        if others:
            kill(others)
        else:
            psutil.wait_procs([member.process for member in members], timeout=0.5)
        if time.monotonic() > deadline:
            numbers = ", ".join(str(member.process.pid) for member in members)
            raise ProgramFailed(
                f"these processes of the lab did not exit: {numbers}", fix=f"Inspect them: ps -fp '{numbers}'"
            )
