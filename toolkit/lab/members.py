"""Which processes are a lab's: its daemons, their job steps, and what jobs have started. Never anybody else's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psutil

    from toolkit.lab.place import Place

# The daemons are started with these variables. The folder's name is random, so it names one lab and no other.
FOLDER_VARIABLE = "CTK_LAB_FOLDER"
DAEMON_VARIABLE = "CTK_LAB_DAEMON"


@dataclass(frozen=True, slots=True)
class Member:
    """A living process of a lab. `part` is munged, slurmctld, or the name of the node that it runs on."""

    process: psutil.Process
    part: str
    is_daemon: bool


def find_members(place: Place) -> list[Member]:
    """Every living process of a lab.

    A daemon is known by its environment. slurmstepd overwrites its own with its title, but stands in the folder of the
    slurmd that started it. A job's process is known by what slurmstepd put into its environment, even when it has left
    its parents; one that has cleared its environment is known as a descendant.
    """
    import psutil

    found: dict[int, Member] = {}
    children: dict[int, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        try:
            children.setdefault(process.ppid(), []).append(process)
            if process.status() != psutil.STATUS_ZOMBIE and (member := _recognise(process, place)) is not None:
                found[process.pid] = member
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it has just ended, or is another user's
    parents = list(found.values())
    while parents:
        parent = parents.pop()
        for child in children.get(parent.process.pid, ()):
            if child.pid not in found:
                found[child.pid] = Member(child, parent.part, is_daemon=False)
                parents.append(found[child.pid])
    return list(found.values())


def _recognise(process: psutil.Process, place: Place) -> Member | None:
    if process.name() == "slurmstepd":
        folder = Path(process.cwd())
        return Member(process, folder.name, is_daemon=False) if folder == place.spool(folder.name) else None
    environment = process.environ()
    if environment.get(FOLDER_VARIABLE) == str(place.folder):
        return Member(process, environment.get(DAEMON_VARIABLE, ""), is_daemon=True)
    if "SLURMD_NODENAME" in environment and environment.get("SLURM_CONF") == str(place.slurm_conf):
        return Member(process, environment["SLURMD_NODENAME"], is_daemon=False)
    return None


def end(members: Iterable[Member], *, grace: float) -> None:
    """Ask processes to end, and after `grace` seconds make them; return when none is left.

    psutil compares the start time before each signal: a number that was given to another process is left alone.
    """
    import contextlib

    import psutil

    processes = [member.process for member in members]
    if grace > 0:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        _, processes = psutil.wait_procs(processes, timeout=grace)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
