"""Pack a directory as one squashfs, with owners as they are in the container."""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.runtime.known_errors import FULL_DISK
from toolkit.runtime.options import ZSTD, packing_limits
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.namespace import as_owner
from toolkit.support.processes import run, stream
from toolkit.support.programs import find_program

if TYPE_CHECKING:
    from collections.abc import Sequence

_LAST_LINES = 12


def find_mksquashfs() -> str:
    """The path of mksquashfs. Raises MissingOnHost (`no-mksquashfs`) if there is none."""
    return find_tool("mksquashfs", "which packs a layer", "Install squashfs-tools, or build with --flat.")


def packer_version() -> str | None:
    """The version of mksquashfs, such as "4.5.1"; None if it does not say it."""
    found = re.search(r"mksquashfs version (\S+)", run([find_mksquashfs(), "-version"]).stdout)
    return found[1] if found else None


def find_tool(name: str, purpose: str, fix: str) -> str:
    """The path of a program of squashfs-tools. Raises MissingOnHost (`no-mksquashfs`) if there is none."""
    found = find_program(name)
    if found is None:
        raise MissingOnHost(f"there is no {name} on this host, {purpose}", fix=fix, code="no-mksquashfs")
    return found


def packing_arguments(compression: str, cores: int | None, memory: int | None = None) -> list[str]:
    """Arguments of mksquashfs."""
    words = ["-comp", "gzip"] if compression == "gzip" else ZSTD
    return [*words, *packing_limits(cores, memory)]


def pack(directory: Path, output: Path, compression: str, cores: int | None, memory: int | None = None) -> None:
    """Write `directory` to the new file `output`. Raises as `run_tool`, and MissingOnHost."""
    words = [find_mksquashfs(), str(directory), str(output), "-noappend", "-no-progress", "-quiet"]
    run_tool("packing a layer", [*words, *packing_arguments(compression, cores, memory)])


def run_tool(what: str, argv: Sequence[str]) -> None:
    """Run a program of squashfs-tools where this user owns what root of the image owns.

    Raises ProgramFailed with its last lines; OSError of a full disk if they name one, as if ctk itself had written:
    the watch over the disks of a build (`RoomWatch`) says which.
    """
    lines: deque[str] = deque(maxlen=_LAST_LINES)
    status = stream(as_owner(argv), lines.append)
    if status == 0:
        return
    if any(re.search(FULL_DISK.pattern, line, re.IGNORECASE) for line in lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    message = f"{what} failed: {Path(argv[0]).name} exited with status {status}"
    raise ProgramFailed(message, last_lines=tuple(lines))
