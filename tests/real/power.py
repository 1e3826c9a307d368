"""A disk whose power is cut: the file of a loop device, copied at one moment, is what a power failure would leave.

The file lies on XFS, which copies it by reference (`cp --reflink=always`) while nothing else can write to it. It has
what the inner file system has issued, and nothing of what is still in its page cache.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OPTIONS = {"ext4": "loop", "xfs": "loop,nouuid"}  # nouuid: a copy has the UUID of the disk that is mounted


@dataclass(frozen=True)
class Disk:
    """A mounted file system, whose device is the file `device`."""

    kind: str
    device: Path
    place: Path

    def cut(self, name: str = "cut") -> Path:
        """A copy of the device as it is now."""
        copy = self.device.with_name(name)
        subprocess.run(["cp", "--reflink=always", self.device, copy], check=True)
        return copy

    @contextmanager
    def after(self, cut: Path) -> Iterator[Path]:
        """The files that a cut left, as the next start finds them; the copy is removed at the end."""
        place = self.device.with_name(f"{cut.name}.mounted")
        place.mkdir()
        try:
            with _mounted(self.kind, cut, place):
                yield place
        finally:
            place.rmdir()
            cut.unlink()


@contextmanager
def disk(directory: Path, kind: str, megabytes: int = 400) -> Iterator[Disk]:
    """A disk with the file system `kind`, mounted below `directory`."""
    with ExitStack() as stack:
        outer, place = directory / "outer", directory / "disk"
        for path in (outer, place):
            path.mkdir()
        stack.enter_context(_mounted("xfs", _made("xfs", directory / "outer.img", 4 * megabytes), outer))
        device = _made(kind, outer / "device", megabytes)
        stack.enter_context(_mounted(kind, device, place))
        yield Disk(kind, device, place)


def _made(kind: str, file: Path, megabytes: int) -> Path:
    with file.open("wb") as new:
        new.truncate(megabytes << 20)
    subprocess.run([f"mkfs.{kind}", "-q", file], check=True)
    return file


@contextmanager
def _mounted(kind: str, device: Path, place: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", kind, "-o", _OPTIONS[kind], device, place], check=True)
    try:
        yield
    finally:
        # Containers of other tests that were started meanwhile have copies of the mount, and keep its loop device open.
        subprocess.run(["umount", "--lazy", place], check=True)
