"""Process tracking by the lab itself, because Slurm can track processes by cgroups only as root.

proctrack/linuxproc signals every descendant of a job: SIGTERM would end the FUSE helper of a container, and so
the image of a program that still writes its checkpoint. It also loses a process whose parent has exited.
"""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

from toolkit.support.files import write_atomically

if TYPE_CHECKING:
    from toolkit.lab.paths import LabPaths

MARK_VARIABLE = "CTK_CLUSTER"  # the lab of a process: two labs use the same job numbers

# Those that Apptainer starts to mount images and overlays without root (apptainer, "User-namespace requirements").
_FUSE_HELPERS = ("squashfuse_ll", "squashfuse", "fuse2fs", "fuse-overlayfs", "gocryptfs")


def fuse_helper(program: str) -> str:
    """A script in place of the FUSE program at the path `program`: libfuse leaves an ignored signal ignored."""
    return f'#!/bin/sh\ntrap "" TERM INT HUP USR1 USR2\nexec {shlex.quote(program)} "$@"\n'


def epilog(place: LabPaths) -> str:
    """The script that slurmd runs on a node when a job has ended there: it kills what the job left running."""
    mark = shlex.quote(f"{MARK_VARIABLE}={place.directory}")
    return "\n".join(
        [
            "#!/bin/sh",
            'for file in $(grep -slzx -e "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ); do',
            f'    grep -sqzx -e {mark} "$file" && grep -sqzx -e "SLURMD_NODENAME=$SLURMD_NODENAME" "$file" || continue',
            "    pid=${file#/proc/}",
            '    kill -KILL "${pid%/environ}" 2>/dev/null',
            "done",
            "exit 0",
            "",
        ]
    )


def write_tracking(place: LabPaths) -> None:
    """Write the epilog and the stand-ins of the FUSE programs that this host has."""
    write_atomically(place.epilog, epilog(place), mode=0o755)
    place.programs.mkdir()
    for name in _FUSE_HELPERS:
        program = shutil.which(name)
        if program is not None:
            write_atomically(place.programs / name, fuse_helper(program), mode=0o755)
