"""Modulefiles for a lab, so that `module load apptainer` in a job script works as on a real site."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.files import write_atomically
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.lab.paths import LabPaths

# Where Lmod and Environment Modules keep what defines `module` for bash: on Debian, and on RHEL if it differs.
_DEFINITIONS = (
    "/usr/share/lmod/lmod/init/bash",
    "/usr/share/modules/init/bash",
    "/usr/share/Modules/init/bash",
)
_PROGRAMS = {
    "apptainer": ("apptainer", "singularity"),
    "singularity": ("singularity",),
    "openmpi": ("mpirun", "mpiexec", "mpicc", "mpicxx", "mpifort", "ompi_info"),
    "mpich": ("mpirun", "mpiexec", "mpicc", "mpicxx", "mpifort"),
}
_VERSIONS = (
    ("apptainer", re.compile(r"^apptainer version (\d[\w.+-]*)")),
    ("singularity", re.compile(r"^singularity(?:-ce|-pro)? version (\d[\w.+-]*)")),
    ("openmpi", re.compile(r"^mpirun \(Open MPI\) (\d[\w.+-]*)")),
    ("mpich", re.compile(r"^HYDRA build details:\s+Version:\s+(\d[\w.+-]*)")),
)


@dataclass(frozen=True, slots=True)
class Software:
    """A program of this machine that gets a module: `apptainer/1.4.5`."""

    name: str
    version: str


def module_definition() -> str | None:
    """The file that defines `module` for bash; None if neither Environment Modules nor Lmod is installed."""
    home = os.environ.get("MODULESHOME")
    candidates = ([f"{home}/init/bash"] if home else []) + list(_DEFINITIONS)
    return next((path for path in candidates if Path(path).is_file()), None)


def recognise(version_output: str) -> Software | None:
    """The software with this output of `--version`; None if it gets no module."""
    for name, pattern in _VERSIONS:
        match = pattern.search(version_output)
        if match:
            return Software(name, match[1])
    return None


def modulefile(software: Software, directory: Path) -> str:
    """A modulefile in Tcl, which both Environment Modules and Lmod read; `directory` holds the programs."""
    return (
        "#%Module1.0\n"
        f'module-whatis "{software.name} {software.version}, as installed on this machine"\n'
        f"conflict {software.name}\n"
        f"prepend-path PATH {directory}\n"
    )


def write_modulefiles(place: LabPaths) -> None:
    """Create a module for each known program on this machine. Raises MissingOnHost if the disk is full."""
    for software in _installed():
        # Separate symlinks: with /usr/bin first on PATH, loading a module would hide a virtual environment.
        programs = place.directory / "software" / software.name / software.version
        programs.mkdir(parents=True)
        for name in _PROGRAMS[software.name]:
            target = shutil.which(name)
            if target is not None:
                (programs / name).symlink_to(target)
        path = place.modulefiles / software.name / software.version
        path.parent.mkdir(parents=True)
        write_atomically(path, modulefile(software, programs))


def _installed() -> Iterable[Software]:
    found = {}
    for program in ("apptainer", "singularity", "mpirun"):
        if shutil.which(program) is not None:
            software = recognise(run([program, "--version"], timeout=30).stdout)
            if software is not None:
                found[software.name] = software
    return found.values()
