"""Starting the daemons of a lab, and saying why one does not come up."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.lab.members import DAEMON_VARIABLE, FOLDER_VARIABLE
from toolkit.lab.requirements import search_path
from toolkit.support.errors import ProgramFailed
from toolkit.support.processes import launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path
    from subprocess import Popen

    from toolkit.lab.place import Place
    from toolkit.lab.requirements import Programs


class PortTaken(ProgramFailed):
    """Somebody took a port between our look at it and the daemon's start."""

    code = "port-taken"


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon that was started: munged, slurmctld, or the slurmd of the node that `part` names."""

    part: str
    process: Popen[bytes]


def start_munged(place: Place, programs: Programs) -> Daemon:
    """munged, with a key, a socket and all else of its own."""
    argv = [
        programs.munged,
        "--foreground",
        "--force",  # it would rather see its socket in a folder that everybody may enter
        f"--key-file={place.munge_key}",
        f"--socket={place.munge_socket}",
        f"--pid-file={place.folder / 'munged.pid'}",
        f"--log-file={place.log('munged')}",
        f"--seed-file={place.folder / 'munge.seed'}",
    ]
    return _start("munged", argv, place, place.folder)


def start_slurmctld(place: Place, programs: Programs) -> Daemon:
    """The controller. With -c it does not look for the state of an earlier one: there was none."""
    return _start("slurmctld", [programs.slurmctld, "-D", "-c", "-f", str(place.slurm_conf)], place, place.folder)


def start_slurmd(node: str, place: Place, programs: Programs) -> Daemon:
    """The daemon of one node. It stands in the node's spool folder, where `find_members` looks for its steps."""
    argv = [programs.slurmd, "-D", "-N", node, "-f", str(place.slurm_conf)]
    return _start(node, argv, place, place.spool(node))


def _start(part: str, argv: Sequence[str], place: Place, cwd: Path) -> Daemon:
    # A lab may be started from a job of another one, or of the site's Slurm: nothing of that may reach its daemons.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "CTK_LAB_"))}
    own = {
        "PATH": search_path(),
        "SLURM_CONF": str(place.slurm_conf),
        FOLDER_VARIABLE: str(place.folder),
        DAEMON_VARIABLE: part,
    }
    return Daemon(part, launch(argv, env={**inherited, **own}, cwd=cwd, output=place.output(part)))


def wait_until(ready: Callable[[], bool], daemons: Iterable[Daemon], place: Place, *, seconds: float) -> None:
    """Return when `ready()`. Raises PortTaken or ProgramFailed where a daemon ends, or `seconds` are over."""
    daemons = tuple(daemons)
    deadline = time.monotonic() + seconds
    while not ready():
        for daemon in daemons:
            if daemon.process.poll() is not None:
                raise _ended(daemon, place)
        if time.monotonic() > deadline:
            part = daemons[0].part
            raise ProgramFailed(
                f"the lab did not come up: {part} is not ready after {seconds:.0f} s",
                last_lines=_last_lines(part, place),
                log=place.log(part),
            )
        time.sleep(0.05)


def _ended(daemon: Daemon, place: Place) -> ProgramFailed:
    lines = _last_lines(daemon.part, place)
    if any("Address already in use" in line for line in lines):
        return PortTaken(
            f"the lab did not come up: another program took a port of {daemon.part} at that very moment",
            last_lines=lines,
            log=place.log(daemon.part),
        )
    return ProgramFailed(
        f"the lab did not come up: {daemon.part} ended with status {daemon.process.returncode}",
        last_lines=lines,
        log=place.log(daemon.part),
    )


def _last_lines(part: str, place: Place) -> tuple[str, ...]:
    for path in (place.log(part), place.output(part)):
        if path.is_file() and (text := path.read_text(errors="replace").strip()):
            return tuple(text.splitlines()[-12:])
    return ()
