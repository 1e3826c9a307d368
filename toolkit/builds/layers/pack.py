"""Pack a directory as one squashfs, with owners as they are in the container."""

from __future__ import annotations

import os
import shutil
from collections import deque
from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.namespace import as_owner
from toolkit.support.processes import stream

if TYPE_CHECKING:
    from pathlib import Path

_LAST_LINES = 12
# Where the PATH of an ordinary user may not lead, and where Apptainer keeps the programs that it brings.
_MORE_PLACES = ("/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/libexec/apptainer/bin", "/usr/lib/apptainer/bin")


def find_mksquashfs() -> str:
    """The path of mksquashfs. Raises MissingOnHost (`no-mksquashfs`) if there is none."""
    found = shutil.which("mksquashfs") or shutil.which("mksquashfs", path=os.pathsep.join(_MORE_PLACES))
    if found is None:
        raise MissingOnHost(
            "there is no mksquashfs on this host, which packs a layer",
            fix="Install squashfs-tools, or build with --flat.",
            code="no-mksquashfs",
        )
    return found


def packing_arguments(compression: str, cores: int | None) -> list[str]:
    """Arguments of mksquashfs: level 3 of zstd is as small as gzip, in a sixth of the time (`BuildOptions`)."""
    words = ["-comp", "gzip"] if compression == "gzip" else ["-comp", "zstd", "-Xcompression-level", "3"]
    return [*words, *(["-processors", str(cores)] if cores is not None else [])]


def pack(directory: Path, output: Path, compression: str, cores: int | None) -> None:
    """Write `directory` to the new file `output`. Raises MissingOnHost, ProgramFailed with the last lines."""
    words = [find_mksquashfs(), str(directory), str(output), "-noappend", "-no-progress", "-quiet"]
    lines: deque[str] = deque(maxlen=_LAST_LINES)
    status = stream(as_owner([*words, *packing_arguments(compression, cores)]), lines.append)
    if status != 0:
        raise ProgramFailed(
            f"packing a layer failed: mksquashfs exited with status {status}",
            last_lines=tuple(lines),
        )
