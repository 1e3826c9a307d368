"""Free space on the disks of a build: checked before it starts, and after a failure to find the full disk."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.runtime.area import scratch_of, scratch_variable
from toolkit.runtime.known_errors import FULL_DISK, KnownError, explain
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.files import FULL, format_size, free_space, nearest_existing
from toolkit.support.paths import LARGER_AREA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.support.paths import WorkArea

UNPACKED = 4  # an image of a framework unpacks to 2 to 3 times its compressed size, and the new one comes on top
_UNKNOWN = 1 << 30  # bytes: a small Debian image with its unpacked tree, for a base whose size is not known
_LEAST = 64 << 20  # bytes: the logs and temporary files of any build
_FULL = 64 << 20  # bytes: what a disk may still have when a sample finds it just before a write fails
_SECONDS_BETWEEN_SAMPLES = 0.05


@dataclass(frozen=True, slots=True)
class Disk:
    """A directory that a build writes to: its purpose, and the fix if its file system is full."""

    path: Path
    purpose: str
    fix: str


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that a build needs: in its scratch directory, and where the new image is written."""

    build: int
    image: int


NOTHING = Room(0, 0)  # another check will know it
UNKNOWN = Room(_UNKNOWN - _LEAST, _UNKNOWN - _LEAST)


def disks(area: WorkArea, output: Path | None) -> tuple[Disk, ...]:
    """The directories that a build of `output` writes to; None if a base is pulled to the work area."""
    variable = scratch_variable()
    roomier = "to a directory with more free space, for example on scratch."
    image = [Disk(output.parent, "the image", "Write the image elsewhere with -o.")] if output else []
    return (
        Disk(scratch_of(area), "the build", f"Unset {variable}, or set it {roomier}" if variable else LARGER_AREA),
        *image,
        Disk(area.path, "the cache", LARGER_AREA),
        Disk(Path("/tmp"), "temporary files", "Free some space there, or build on another host."),  # noqa: S108
    )


def check_room(needed: Room, output: Path | None, area: WorkArea) -> None:
    """Raise MissingOnHost if the output's disk or that of the work area has clearly too little room.

    `output` is None if a base is pulled to the work area.
    """
    variable, scratch = scratch_variable(), scratch_of(area)
    if variable and not scratch.is_dir():
        message = f"{variable} is set to {scratch}, which does not exist"
        raise MissingOnHost(message, fix=f"Create that directory, or unset {variable}.")
    # Each disk by itself, even if both are on one file system: what does not fit is refused, not what may not fit.
    for disk, size in zip(disks(area, output), (needed.build, needed.image), strict=False):
        free, need = free_space(disk.path), size + _LEAST
        if free < need:
            raise MissingOnHost(
                f"not enough space for {disk.purpose} in {disk.path}: "
                f"{format_size(free)} free, {format_size(need)} needed",
                fix=disk.fix,
                code="disk-full",
            )


def check_exec(area: WorkArea) -> None:
    """Raise MissingOnHost if no program can be executed where builds unpack their images (mount(8), noexec)."""
    scratch, variable = scratch_of(area), scratch_variable()
    if os.statvfs(nearest_existing(scratch)).f_flag & os.ST_NOEXEC:
        raise MissingOnHost(
            f"builds run programs in {scratch}, and its file system is mounted with noexec",
            fix=f"Unset {variable}, or set it to a directory on another disk."
            if variable
            else "Set CTK_HOME, or only APPTAINER_TMPDIR for what builds unpack, to a directory on another disk.",
            code="scratch-noexec" if variable else "work-area-noexec",
        )


class RoomWatch:
    """Watches the free space while a build runs: a failing runtime cleans up before it prints the reason."""

    def __init__(self, disks: Sequence[Disk]) -> None:
        self._disks: dict[int, list[Disk]] = {}  # by file system
        for disk in disks:
            if disk.path.is_dir():
                self._disks.setdefault(file_system_of(disk.path), []).append(disk)
        self._first = self._sample()
        self._least = dict(self._first)

    @contextlib.contextmanager
    def watching(self) -> Iterator[RoomWatch]:
        """Take samples while the block runs. An OSError of a full disk becomes ProgramFailed (`disk-full`)."""
        ended = threading.Event()

        def take_samples() -> None:
            while not ended.wait(_SECONDS_BETWEEN_SAMPLES):
                self._take_sample()

        sampler = threading.Thread(target=take_samples, daemon=True)
        sampler.start()
        try:
            yield self
        except OSError as error:
            self._take_sample()
            if error.errno not in FULL:
                raise
            full = self.reported()
            raise ProgramFailed(f"the build stopped: {full.meaning}", fix=full.fix, code="disk-full") from error
        finally:
            ended.set()
            sampler.join(1)

    def reported(self) -> KnownError:
        """Which disk is full, if the runtime or the system reported one."""
        full = [device for device, free in self._least.items() if free < _FULL]
        if full:
            return self._full_error(full)
        places = (f"{disk[0].path} ({format_size(self._first[device])} free)" for device, disk in self._disks.items())
        meaning = f"a disk or a quota is full, one of: {', '.join(places)}"
        return KnownError(FULL_DISK.pattern, meaning, f"`quota -s` may show which. {self._fix(self._disks)}")

    def unreported(self) -> KnownError | None:
        """A disk that became full; a program in `%post` may have said no more than "I/O error"."""
        full = [device for device, free in self._least.items() if free < _FULL <= self._first[device]]
        return self._full_error(full) if full else None

    def _full_error(self, full: Sequence[int]) -> KnownError:
        return KnownError(FULL_DISK.pattern, "; ".join(map(self._words, full)), self._fix(full))

    def _words(self, device: int) -> str:
        disk = self._disks[device][0]
        return (
            f"no space left for {disk.purpose} in {disk.path} ({format_size(self._least[device])} free, "
            f"more than {format_size(self._first[device])} needed)"
        )

    def _fix(self, devices: Iterable[int]) -> str:
        return " ".join(dict.fromkeys(disk.fix for device in devices for disk in self._disks[device][:2]))

    def _sample(self) -> dict[int, int]:
        return {device: free_space(disk[0].path) for device, disk in self._disks.items()}

    def _take_sample(self) -> None:
        with contextlib.suppress(OSError):
            for device, free in self._sample().items():
                self._least[device] = min(self._least[device], free)


def file_system_of(path: Path) -> int:
    """A number that tells the file system of `path` from others."""
    return path.stat().st_dev


def cause(lines: Sequence[str], room: RoomWatch) -> KnownError | None:
    """What made a build fail, as far as the runtime's output and the disks tell; None if they do not."""
    known = explain(lines)
    return room.reported() if known is FULL_DISK else known or room.unreported()
