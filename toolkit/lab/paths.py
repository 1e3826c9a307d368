"""The private directory of a lab: the path of each of its files, and the choice of the directory."""

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
    """The directory of one lab. The lab writes nowhere else, so removing the directory removes the lab."""

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
        """The first directory on the PATH of jobs."""
        return self.directory / "bin"

    @property
    def bashrc(self) -> Path:
        return self.directory / "bashrc"

    @property
    def finished_jobs(self) -> Path:
        return self.directory / "finished-jobs"

    def profile(self, name: str) -> Path:
        """The cluster profile of the lab, where `toolkit.scheduler.profile_places` looks for it."""
        return self.slurm_conf.with_name("ctk-profiles") / f"{name}.toml"

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
        """The log file of a daemon. `daemon` is munged, slurmctld or the name of a node."""
        return self.logs / f"{daemon}.log"

    def output(self, daemon: str) -> Path:
        """The output of a daemon. It has the reason if the daemon fails before it opens its log."""
        return self.logs / f"{daemon}.out"


def fits(directory: Path) -> bool:
    """Whether the sockets of a lab have room below `directory`, and slurm.conf can name it."""
    return len(os.fsencode(directory)) + _LONGEST_SOCKET <= _SOCKET_ROOM and bool(_PLAIN.fullmatch(str(directory)))


def choose_place(name: str) -> LabPaths:
    """Choose the private directory of a new lab, in the first of the usual parents that is usable.

    Not below the home: its path may be too long for Slurm's sockets, and it may be on a network file system.
    Raises MissingOnHost, with the reason for each parent, if none is usable.
    """
    reasons = []
    for parent in _candidates():
        reason = _why_not(parent, name)
        if reason is None:
            return LabPaths(parent / f"ctk-{name}-{secrets.token_hex(4)}")
        reasons.append(f"{parent}: {reason}")
    raise MissingOnHost(
        f"no usable directory for the lab's sockets and logs: {'; '.join(reasons)}",
        code="no-place-for-lab",
        fix=f"Free some space in /tmp: a lab needs {format_size(_MIN_ROOM)} in a directory with a short path.",
    )


def create(place: LabPaths) -> None:
    """Create the directory of a lab with mode 0700. Raises MissingOnHost if that fails."""
    try:
        place.directory.mkdir(mode=0o700)
    except OSError as error:
        raise MissingOnHost(f"cannot create {place.directory}: {error.strerror}", code="no-place-for-lab") from error


def _candidates() -> list[Path]:
    # $XDG_RUNTIME_DIR comes last: it is removed at logout, but a lab should keep running.
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return [Path("/tmp"), Path("/var/tmp"), *([Path(runtime)] if runtime else [])]  # noqa: S108 - the directory is private


def _why_not(parent: Path, name: str) -> str | None:
    if not parent.is_dir():
        return "no such directory"
    if not os.access(parent, os.W_OK | os.X_OK):
        return "not writable"
    if not fits(parent / f"ctk-{name}-12345678"):
        return "the path is too long for a socket, or has characters that slurm.conf does not allow"
    if os.statvfs(parent).f_flag & os.ST_NOEXEC:
        return "mounted with noexec, but job scripts run from there"
    free = shutil.disk_usage(parent).free
    if free < _MIN_ROOM:
        return f"only {format_size(free)} free"
    return None
