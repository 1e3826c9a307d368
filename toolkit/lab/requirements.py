"""The programs that a lab needs from the distribution, and the packages that contain them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from toolkit.support.errors import MissingOnHost

_NEEDED = ("munged", "slurmctld", "slurmd", "scontrol", "sinfo", "squeue", "sbatch", "srun", "scancel")

# Package names as each distribution has them; those of Fedora are in EPEL for RHEL and its derivatives.
_INSTALL = {
    "debian": "apt-get install slurmctld slurmd slurm-client munge",
    "ubuntu": "apt-get install slurmctld slurmd slurm-client munge",
    "fedora": "dnf install slurm-slurmctld slurm-slurmd slurm munge",
    "rhel": "dnf install epel-release && dnf install slurm-slurmctld slurm-slurmd slurm munge",
    "suse": "zypper install slurm slurm-node munge",
    "arch": "pacman -S slurm-llnl munge",
}


@dataclass(frozen=True, slots=True)
class Programs:
    """The paths of the daemons."""

    munged: str
    slurmctld: str
    slurmd: str


def search_path() -> str:
    """PATH and the directories of daemons, which Debian leaves out of an ordinary user's PATH."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def find_programs(os_release: Path = Path("/etc/os-release")) -> Programs:
    """The daemons. Raises MissingOnHost, with the packages to install, if a program is missing."""
    where = {name: shutil.which(name, path=search_path()) for name in _NEEDED}
    missing = [name for name, path in where.items() if path is None]
    if missing:
        text = os_release.read_text() if os_release.is_file() else ""
        raise MissingOnHost(
            f"a lab needs Slurm and MUNGE; missing on this host: {', '.join(missing)}", fix=install_advice(text)
        )
    return Programs(*(str(where[name]) for name in ("munged", "slurmctld", "slurmd")))


def install_advice(os_release: str) -> str:
    """One line on how to install Slurm on the distribution that an os-release(5) text describes."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split()
    command = next((_INSTALL[name] for name in names if name in _INSTALL), None)
    if command is None:
        return "Install your distribution's packages of Slurm (slurmctld, slurmd, client commands) and MUNGE."
    return f"Install the packages as root: {command}"
