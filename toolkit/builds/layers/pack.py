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
    from collections.abc import Callable, Sequence

_LAST_LINES = 12
# "[=====/        ]  123/2889   4%": drawn by squashfs-tools 4.4 to 4.7 without `-no-progress`.
_BAR = re.compile(r"\[=*[|/\\-] *\] +\d+/\d+ +(\d{1,3})%", re.ASCII)


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


def pack(
    directory: Path,
    output: Path,
    compression: str,
    cores: int | None,
    memory: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write `directory` to the new file `output`. `on_progress` and errors are as those of `run_tool`; also raises
    MissingOnHost.
    """
    words = [find_mksquashfs(), str(directory), str(output), "-noappend", "-quiet"]
    run_tool("packing a layer", [*words, *packing_arguments(compression, cores, memory)], on_progress)


def percent_of(line: str) -> int | None:
    """The percentage at the end of a line of the progress bar of squashfs-tools; None for any other line."""
    found = _BAR.fullmatch(line)
    return int(found[1]) if found else None


def run_tool(what: str, argv: Sequence[str], on_progress: Callable[[int, int], None] | None = None) -> None:
    """Run a program of squashfs-tools where this user owns what root of the image owns.

    `on_progress` gets how many percent are done, and 100, from the program's own progress bar. Raises ProgramFailed
    with its last lines; OSError of a full disk if they name one, as if ctk itself had written: the watch over the disks
    of a build (`RoomWatch`) says which.
    """
    lines: deque[str] = deque(maxlen=_LAST_LINES)

    def take(line: str) -> None:
        percent = percent_of(line)
        if percent is None:
            lines.append(line)
        elif on_progress is not None:
            on_progress(percent, 100)

    # Without a terminal, mksquashfs shows one state in a hundred (4.4 to 4.7, progressbar.c), and unsquashfs none.
    status = stream(as_owner(argv), take, terminal=True)
    if status == 0:
        return
    if any(re.search(FULL_DISK.pattern, line, re.IGNORECASE) for line in lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    message = f"{what} failed: {Path(argv[0]).name} exited with status {status}"
    raise ProgramFailed(message, last_lines=tuple(lines))
