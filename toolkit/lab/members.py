"""Which processes are a lab's: its daemons, their job steps, and what jobs have started. Never anybody else's."""

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

# The daemons are started with these variables. The directory's name is random, so it names one lab and no other.
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
    """A living process of a lab. `part` is munged, slurmctld, supervisor, or its node; empty where nobody can tell."""

    process: psutil.Process
    role: Role
    part: str


def find_members(place: LabPaths) -> list[Member]:
    """Every living process of a lab.

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
            continue  # it has just ended, or is another user's
    parents = list(found.values())
    while parents:
        parent = parents.pop()
        for child in children.get(parent.process.pid, ()):
            if child.pid not in found:
                orphan = parent.role is Role.SUPERVISOR
                found[child.pid] = Member(child, Role.JOB, "") if orphan else Member(child, parent.role, parent.part)
                parents.append(found[child.pid])
    return list((marked | found).values())  # who is found knows the node, too


def mark(place: LabPaths) -> int:
    """The limit RLIMIT_RTTIME, in microseconds, that every process of a lab inherits. No other process has it."""
    return (1 << 60) + int.from_bytes(hashlib.sha256(os.fsencode(place.directory)).digest()[:7], "big")


def _has_mark(process: psutil.Process, place: LabPaths) -> bool:
    """Whether a process of this user has the lab's mark; anybody could give it to a process of their own.

    It is readable where the environment is not: of a process in a user namespace of its own, as containers have.
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
    """End processes at once; return when they are gone, or after five seconds.

    psutil compares the start time before the signal: a number that was given to another process is left alone.
    """
    import psutil

    processes = [member.process for member in members]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()
    psutil.wait_procs(processes, timeout=5)


def kill_all(place: LabPaths) -> None:
    """End every process of a lab, however it came to be. Its daemons have nothing to save: their files go next.

    A supervisor ends with its last child, and not before: when the supervisors are gone, no process is left. Raises
    ProgramFailed where a process does not end: one that waits for a dead disk, or has become another user's.
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
            raise ProgramFailed(f"these processes of the lab do not end: {numbers}", fix=f"Look: ps -fp '{numbers}'")
