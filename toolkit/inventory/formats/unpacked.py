"""What the file systems of an image take on a disk once they are unpacked, from their inodes alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolkit.inventory.formats.images import mounted_partitions, open_partition
from toolkit.inventory.formats.kinds import PathKind, kind_of
from toolkit.inventory.formats.sif import read_sif
from toolkit.inventory.formats.squashfs import Squashfs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.inventory.formats.inodes import FileInode

_ON_DISK = 4096  # bytes of a disk's block, which a directory, and the last bytes of a file, take whole


def unpacked_size(path: Path) -> int:
    """Bytes on a disk, for a SIF or a squashfs; of a layered image, all partitions together.

    Measured with unsquashfs 4.5.1, which Apptainer runs: it writes a block of zeros as a hole only where the file had
    holes when it was packed; the zeros of any other file take their room. A file with several names takes it once.
    Raises WrongInput if the image is damaged, or has another file system.
    """
    total = 0
    for squashfs in _file_systems(path):
        try:
            files = 0
            for inode in squashfs.inodes():
                total += _on_disk(inode, squashfs.block_size)
                files += 1
            total += (squashfs.inode_count - files) * _ON_DISK
        finally:
            squashfs.close()
    return total


def directory_size(path: Path) -> int:
    """Bytes that a directory takes on its disk; a file with several names counts once, and what cannot be read not."""
    seen: set[tuple[int, int]] = set()
    total, above = 0, [path]
    while above:
        try:
            with os.scandir(above.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if status.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                        if (status.st_dev, status.st_ino) in seen:
                            continue
                        seen.add((status.st_dev, status.st_ino))
                    total += status.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        above.append(path / entry.path)
        except OSError:
            continue
    return total


def _file_systems(path: Path) -> Iterator[Squashfs]:
    if kind_of(path) is PathKind.SQUASHFS:
        yield Squashfs(path)
        return
    sif = read_sif(path)
    for partition in mounted_partitions(sif):
        yield open_partition(sif, partition)


def _on_disk(inode: FileInode, block_size: int) -> int:
    holes = inode.blocks.count(0) * block_size if inode.sparse else 0
    return -(-max(0, inode.size - holes) // _ON_DISK) * _ON_DISK
