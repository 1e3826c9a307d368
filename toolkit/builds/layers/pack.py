"""Pack a directory as one squashfs, with owners as they are in the container."""

from __future__ import annotations

import os
import re
import shutil
from collections import deque
from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.namespace import as_owner
from toolkit.support.processes import run, stream

if TYPE_CHECKING:
    from pathlib import Path

_LAST_LINES = 12
# Where the PATH of an ordinary user may not lead, and where Apptainer keeps the programs that it brings.
_MORE_PLACES = ("/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/libexec/apptainer/bin", "/usr/lib/apptainer/bin")


def find_mksquashfs() -> str:
    """The path of mksquashfs. Raises MissingOnHost (`no-mksquashfs`) if there is none."""
    return find_tool("mksquashfs", "which packs a layer", "Install squashfs-tools, or build with --flat.")


def packer_version() -> str | None:
    """The version of mksquashfs, such as "4.5.1"; None if it does not say it."""
    found = re.search(r"mksquashfs version (\S+)", run([find_mksquashfs(), "-version"]).stdout)
    return found[1] if found else None


def find_tool(name: str, purpose: str, fix: str) -> str:
    """The path of a program of squashfs-tools. Raises MissingOnHost (`no-mksquashfs`) if there is none."""
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(_MORE_PLACES))
    if found is None:
        raise MissingOnHost(f"there is no {name} on this host, {purpose}", fix=fix, code="no-mksquashfs")
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
