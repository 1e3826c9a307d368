"""Digests of large files, each computed once: remembered under device, inode, size and times of the file.

`ctime` changes with every write and every change of times (`touch -r`), and an ordinary user cannot set it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.store.trusted import Untrusted, open_directory, open_file
from toolkit.support.durable import write_out
from toolkit.support.files import make_directory, open_regular

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = 1 << 20
_LARGEST_NOTE = 512  # bytes
# A write in the same tick of the clock as the last one leaves ctime as it is; a tick is 1 s at most.
_SETTLED_NS = 2 * 10**9
_LINE = re.compile(r"(\d+) (\d+) (\d+) (sha256:[0-9a-f]{64})\n", re.ASCII)


@dataclass(frozen=True, slots=True)
class Digests:
    """Digests of files, remembered in `directory`, which belongs to this user. Without one nothing is remembered."""

    directory: Path | None

    def of_file(self, path: Path) -> str:
        """The `sha256:…` of a regular file. Raises OSError if it is none, cannot be read, or changes meanwhile."""
        with open_regular(path) as file:
            return self.of_descriptor(file.fileno())

    def of_descriptor(self, descriptor: int) -> str:
        """As `of_file`, of an open file."""
        before = os.fstat(descriptor)
        known = self._remembered(before)
        if known is not None:
            return known
        digest = compute(descriptor)
        after = os.fstat(descriptor)
        if _identity(before) != _identity(after):
            raise OSError("the file changed while it was read")
        self._remember(descriptor, after, digest)
        return digest

    def forget(self, status: os.stat_result) -> None:
        """Remove what is remembered of a file that is removed."""
        if self.directory is not None:
            with contextlib.suppress(OSError):
                (self.directory / _name(status)).unlink()

    def _remembered(self, status: os.stat_result) -> str | None:
        if self.directory is None:
            return None
        try:
            directory = open_directory(self.directory, ())
            try:
                note = open_file(directory, _name(status))
            finally:
                os.close(directory)
            with os.fdopen(note, "rb") as file:
                found = _LINE.fullmatch(file.read(_LARGEST_NOTE).decode("ascii", "replace"))
        except (OSError, Untrusted):
            return None
        if found is None or tuple(map(int, found.groups()[:3])) != (
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        ):
            return None
        return found[4]

    def _remember(self, descriptor: int, status: os.stat_result, digest: str) -> None:
        """Nothing depends on it: a full disk is no error here."""
        if self.directory is None or time.time_ns() - status.st_ctime_ns < _SETTLED_NS:
            return
        name = _name(status)
        new = self.directory / f".{name}.{os.getpid()}.{time.monotonic_ns()}"
        with contextlib.suppress(OSError):
            write_out(descriptor)
            make_directory(self.directory)
            try:
                note = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                with os.fdopen(note, "w") as file:
                    file.write(f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {digest}\n")
                new.rename(self.directory / name)
            except BaseException:
                new.unlink(missing_ok=True)
                raise


def compute(descriptor: int) -> str:
    """The `sha256:…` of an open file, read from its start. Raises OSError."""
    digest, offset = hashlib.sha256(), 0
    while block := os.pread(descriptor, _BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return f"sha256:{digest.hexdigest()}"


def _name(status: os.stat_result) -> str:
    return f"{status.st_dev:x}-{status.st_ino:x}"


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
