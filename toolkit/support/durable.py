"""Write files and names to the disk, so that a power failure after a rename leaves the old content or the new one.

A rename can reach the disk long before the content of the file: ext4 writes its journal every 5 s, and data after 30 s.
The exception of ext4(5), `auto_da_alloc`, is not for files whose space was reserved by fallocate(2).
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)  # some FUSE file systems, and directories on CIFS
_WRITE, _WRITE_AND_WAIT = 2, 7  # flags of sync_file_range(2)
_EXCHANGE = 2  # flag of renameat2(2)
_HERE = -100  # AT_FDCWD


def sync(path: Path) -> None:
    """Return when a file, or a directory with all that is in it, is on the disk. Raises OSError with the path.

    A directory's files are many: the whole file system is written instead.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if path.is_dir():
            _require(_call("syncfs", descriptor), path)
        else:
            sync_descriptor(descriptor, path)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Return when the names in a directory are on the disk. Raises OSError with the path."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # this user may write to it, and not read it
        return
    try:
        sync_descriptor(descriptor, path)
    finally:
        os.close(descriptor)


def sync_descriptor(descriptor: int, path: Path) -> None:
    """fsync(2) of the open file `path`, where its file system can. Raises OSError with the path."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        _require(error.errno or 0, path)


@contextmanager
def syncing(path: Path) -> Iterator[None]:
    """Write a file to the disk while the block runs; it is there when the block has ended. Raises OSError."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as worker:
        written = worker.submit(sync, path)
        yield
        written.result()  # an error is reported once: a later fsync(2) would not raise it


def start_writing(descriptor: int, start: int, size: int) -> None:
    """Begin to write a range of an open file to the disk: less is left for `sync`, which raises the errors."""
    _call("sync_file_range", descriptor, start, size, _WRITE)


def write_out(descriptor: int) -> None:
    """Write the content of an open file to the disk before what is written later; nothing to do if it is there already.

    A digest that is remembered must not outlive the content. Raises OSError.
    """
    _require(_call("sync_file_range", descriptor, 0, 0, _WRITE_AND_WAIT))


def exchange(first: Path, second: Path) -> bool:
    """Swap two names in one moment. False where that fails: the kernel or the file system may not be able to."""
    return _call("renameat2", _HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0


def _require(number: int, path: Path | None = None) -> None:
    """Raise OSError for an error number, unless it says that the file system has no such function."""
    if number not in (0, *_CANNOT):
        raise OSError(number, os.strerror(number), None if path is None else str(path))


def _call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library that Python lacks; return its error number, 0 for none."""
    import ctypes  # not at the top: commands that only read files start faster

    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return errno.ENOSYS
    given = (ctypes.c_int64(value) if isinstance(value, int) else value for value in arguments)
    return 0 if function(*given) == 0 else ctypes.get_errno()
