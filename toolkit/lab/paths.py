"""The one private directory of a lab: where each file of it lies, and where the directory can be."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from toolkit.support.errors import MissingOnHost
from toolkit.support.files import format_size

# sun_path in struct sockaddr_un holds 108 bytes with the closing NUL (unix(7)). The longest socket is the one that
# Slurm's PMIx plugin makes in SlurmdSpoolDir for a job step.
_SOCKET_ROOM = 107
_LONGEST_SOCKET = len("/spool/n64/stepd.slurm.pmix.4294967295.4294967295")
_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")  # slurm.conf has no way to quote a blank or a percent sign
_MIN_ROOM = 64 * 1024 * 1024  # bytes: logs and saved state of a day of practice


@dataclass(frozen=True, slots=True)
class LabPaths:
    """The directory of one lab. All that the lab writes is below it, so removing it removes the lab."""

    directory: Path

    @property
    def slurm_conf(self) -> Path:
        return self.directory / "slurm.conf"

    @property
    def gres_conf(self) -> Path:
        return self.directory / "gres.conf"

    @property
    def munge_key(self) -> Path:
        return self.directory / "munge.key"

    @property
    def munge_socket(self) -> Path:
        return self.directory / "munge.socket"

    @property
    def task_prolog(self) -> Path:
        return self.directory / "task-prolog"

    @property
    def epilog(self) -> Path:
        return self.directory / "epilog"

    @property
    def programs(self) -> Path:
        """What comes first on the PATH of jobs."""
        return self.directory / "bin"

    @property
    def bashrc(self) -> Path:
        return self.directory / "bashrc"

    @property
    def finished_jobs(self) -> Path:
        return self.directory / "finished-jobs"

    @property
    def logs(self) -> Path:
        return self.directory / "log"

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def modulefiles(self) -> Path:
        return self.directory / "modulefiles"

    @property
    def stand_ins(self) -> Path:
        return self.directory / "gpu"

    def spool(self, node: str) -> Path:
        return self.directory / "spool" / node

    def temporary(self, node: str) -> Path:
        return self.directory / "tmp" / node

    def log(self, daemon: str) -> Path:
        """What a daemon logs. `daemon` is munged, slurmctld or the name of a node."""
        return self.logs / f"{daemon}.log"

    def output(self, daemon: str) -> Path:
        """What a daemon prints; it says there why it cannot start, where it comes so far as to know no log yet."""
        return self.logs / f"{daemon}.out"


def fits(directory: Path) -> bool:
    """Whether the sockets of a lab have room below `directory`, and slurm.conf can name it."""
    return len(os.fsencode(directory)) + _LONGEST_SOCKET <= _SOCKET_ROOM and bool(_PLAIN.fullmatch(str(directory)))


def choose_place(name: str) -> LabPaths:
    """Where the private directory of a new lab can be: in the first of the usual places that serves.

    Not below the home: its path may be long, it may be a network file system, and Slurm's sockets like neither.
    Raises MissingOnHost, with the reason for each place, where none serves.
    """
    reasons = []
    for parent in _candidates():
        reason = _why_not(parent, name)
        if reason is None:
            return LabPaths(parent / f"ctk-{name}-{secrets.token_hex(4)}")
        reasons.append(f"{parent}: {reason}")
    raise MissingOnHost(
        f"no directory for the lab's sockets and logs: {'; '.join(reasons)}",
        code="no-place-for-lab",
        fix=f"A lab needs {format_size(_MIN_ROOM)} in a directory with a short path, normally /tmp. Free some space.",
    )


def create(place: LabPaths) -> None:
    """Make the directory of a lab, for this user alone. Raises MissingOnHost where that fails."""
    try:
        place.directory.mkdir(mode=0o700)
    except OSError as error:
        raise MissingOnHost(f"cannot make {place.directory}: {error.strerror}", code="no-place-for-lab") from error


def _candidates() -> list[Path]:
    # $XDG_RUNTIME_DIR comes last: it vanishes at logout, and a lab should outlive that.
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return [Path("/tmp"), Path("/var/tmp"), *([Path(runtime)] if runtime else [])]  # noqa: S108 - the directory is private


def _why_not(parent: Path, name: str) -> str | None:
    if not parent.is_dir():
        return "there is no such directory"
    if not os.access(parent, os.W_OK | os.X_OK):
        return "it is closed to you"
    if not fits(parent / f"ctk-{name}-12345678"):
        return "its path is too long for a socket, or has characters that slurm.conf cannot hold"
    if os.statvfs(parent).f_flag & os.ST_NOEXEC:
        return "it is mounted noexec, and job scripts are run from there"
    free = shutil.disk_usage(parent).free
    if free < _MIN_ROOM:
        return f"only {format_size(free)} are free"
    return None
