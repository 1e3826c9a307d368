"""Files that are never half written, and folders that vanish with the work that needed them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import CtkError, MissingOnHost, WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterator


def write_atomically(path: Path, content: str | bytes, *, mode: int = 0o644, in_place: bool = False) -> None:
    """Write `content` to `path` so that a reader sees the old file or the whole new one, never a part.

    Text becomes UTF-8; a file's name in it that is none keeps its octets. `mode` is subject to the umask, as for any
    new file. `in_place` is for what a person owns: a link is followed, and a file that is there keeps its mode. Raises
    WrongInput where the folder is missing or closed.
    """
    data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    kept = _mode_of(path) if in_place else None
    path = Path(os.path.realpath(path)) if in_place else path
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise WrongInput(
            f"cannot write {path}: {error.strerror}", fix=f"Choose a folder that exists and is yours: {path.parent}"
        ) from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.chmod(mode & ~_umask() if kept is None else kept)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, IsADirectoryError):
            raise WrongInput(f"cannot write {path}: it is a folder") from error
        if isinstance(error, OSError):
            raise MissingOnHost(f"cannot write {path}: {error.strerror}") from error
        raise


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        return None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


@contextlib.contextmanager
def locked(path: Path, *, taken: CtkError | None = None) -> Iterator[None]:
    """Hold the lock file `path` while the block runs. Where another process holds it, wait, or raise `taken` at once.

    Raises MissingOnHost where the file cannot be made.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0 if taken else -1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise taken or AssertionError("a lock without a timeout waits") from None
    except OSError as error:
        raise MissingOnHost(f"cannot write {path}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def size_in_words(octets: float) -> str:
    """1536 -> '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(octets) < 1024:
            return f"{octets:.0f} {unit}" if unit == "B" else f"{octets:.1f} {unit}"
        octets /= 1024
    return f"{octets:.1f} TiB"


def free_space(path: Path) -> int:
    """Octets that this user may still write where `path` is, or would be."""
    there = path
    while not there.exists():
        there = there.parent
    return shutil.disk_usage(there).free
