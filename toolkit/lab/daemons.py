"""Start the daemons of a lab, and report why one does not start."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from toolkit.lab.members import DAEMON_VARIABLE, DIRECTORY_VARIABLE, SUPERVISOR, mark
from toolkit.lab.requirements import search_path
from toolkit.scheduler.environment import is_slurm_variable
from toolkit.support.errors import ProgramFailed
from toolkit.support.processes import launch, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import psutil

    from toolkit.lab.paths import LabPaths
    from toolkit.lab.requirements import Programs


class PortTaken(ProgramFailed):
    """Another program took a port between our check and the daemon's start."""

    code = "port-taken"


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon that was started: munged, slurmctld, or the slurmd of the node that `part` names."""

    part: str
    process: psutil.Process

    def has_ended(self) -> bool:
        """Whether it has exited; its supervisor may not have reaped it yet."""
        import psutil

        try:
            return self.process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def listens_on(self, port: int) -> bool:
        """Whether it is this daemon that listens on a TCP port; a client would wait long for another's answer."""
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            for connection in self.process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,):
                    return True
        return False


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Starts daemons, as their parent. See `toolkit.lab.supervisor`."""

    place: LabPaths
    programs: Programs
    orders: IO[str]
    answers: IO[str]

    def start_munged(self) -> Daemon:
        """Start munged with its own key, socket and other files."""
        place = self.place
        argv = [
            self.programs.munged,
            "--foreground",
            "--force",  # otherwise it refuses a socket in a private directory
            f"--key-file={place.munge_key}",
            f"--socket={place.munge_socket}",
            f"--pid-file={place.directory / 'munged.pid'}",
            f"--log-file={place.log('munged')}",
            f"--seed-file={place.directory / 'munge.seed'}",
        ]
        return self._start("munged", argv, place.directory)

    def start_slurmctld(self) -> Daemon:
        """Start the controller. With -c it does not look for the state of an earlier one: there was none."""
        argv = [self.programs.slurmctld, "-D", "-c", "-f", str(self.place.slurm_conf)]
        return self._start("slurmctld", argv, self.place.directory)

    def start_slurmd(self, node: str) -> Daemon:
        """Start the daemon of one node, in the node's spool directory, where `find_members` looks for its steps."""
        argv = [self.programs.slurmd, "-D", "-N", node, "-f", str(self.place.slurm_conf)]
        return self._start(node, argv, self.place.spool(node))

    def _start(self, part: str, argv: Sequence[str], cwd: Path) -> Daemon:
        import psutil

        trace(argv)
        environment = _environment(part, self.place)
        order = {"argv": argv, "env": environment, "cwd": str(cwd), "output": str(self.place.output(part))}
        number = ""
        with contextlib.suppress(BrokenPipeError):
            self.orders.write(json.dumps(order) + "\n")
            self.orders.flush()
            number = self.answers.readline()
        if not number:
            raise _failure(f"{part} cannot be started", SUPERVISOR, self.place)
        return Daemon(part, psutil.Process(int(number)))


@contextlib.contextmanager
def supervisor(place: LabPaths, programs: Programs) -> Iterator[Supervisor]:
    """Start a supervisor, which takes orders while the block runs. It and its daemons outlive this process."""
    argv = [sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py")), str(mark(place))]
    process = launch(argv, env=_environment(SUPERVISOR, place), cwd=place.directory, errors=place.output(SUPERVISOR))
    with cast("IO[str]", process.stdin) as orders, cast("IO[str]", process.stdout) as answers:
        yield Supervisor(place, programs, orders, answers)


def _environment(part: str, place: LabPaths) -> dict[str, str]:
    # A lab may be started from a job of another one, or of the site's Slurm: its daemons must not see those variables.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not is_slurm_variable(name) and not name.startswith("CTK_LAB_")
    }
    own = {
        "PATH": search_path(),
        "SLURM_CONF": str(place.slurm_conf),
        DIRECTORY_VARIABLE: str(place.directory),
        DAEMON_VARIABLE: part,
    }
    return {**inherited, **own}


def wait_until(ready: Callable[[], bool], daemons: Iterable[Daemon], place: LabPaths, *, seconds: float) -> None:
    """Return when `ready()`. Raises PortTaken or ProgramFailed if a daemon exits, or after `seconds`."""
    daemons = tuple(daemons)
    deadline = time.monotonic() + seconds
    while not ready():
        for daemon in daemons:
            if daemon.has_ended():
                raise _failure(f"{daemon.part} exited", daemon.part, place)
        if time.monotonic() > deadline:
            raise _failure(f"{daemons[0].part} is not ready after {seconds:.0f} s", daemons[0].part, place)
        time.sleep(0.05)


def _failure(what: str, part: str, place: LabPaths) -> ProgramFailed:
    log = next((path for path in (place.log(part), place.output(part)) if _text(path)), place.output(part))
    lines = tuple(_text(log).splitlines()[-12:])
    if any("Address already in use" in line for line in lines):
        return PortTaken(f"another program took a port of {part} while it was starting", last_lines=lines, log=log)
    return ProgramFailed(f"the lab did not start: {what}", last_lines=lines, log=log)


def _text(path: Path) -> str:
    return path.read_text(errors="replace").strip() if path.is_file() else ""
