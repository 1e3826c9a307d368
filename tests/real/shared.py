"""What the workers of one test run share: an image or environment is made once, by the worker that needs it first.

An image is also kept for later runs in pytest's cache (`make clean` removes it), by what it was made from.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from toolkit.support.files import locked

if TYPE_CHECKING:
    from collections.abc import Callable

_STORE = Path(__file__).resolve().parents[2] / ".pytest_cache" / "d" / "ctk-images"
_MEMORY = Path("/dev/shm")
# Two framework builds at once, each with its base, its copy of the base and the resulting image.
_MEMORY_NEEDED = 14 << 30  # bytes


def directory() -> Path:
    """A directory that every user may enter, the same for all workers of a run. Some tests cover /tmp and /var/tmp."""
    run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return Path("/opt") / f"ctk-shared-{run}"


def remove() -> None:
    """Remove what was shared; for the process that started the workers, after they ended."""
    subprocess.run(["rm", "-rf", str(directory())], check=True)


def once(name: str, make: Callable[[Path], None]) -> Path:
    """The path at which `make` wrote something; other workers wait meanwhile. After a failure the next worker tries."""
    directory().mkdir(mode=0o755, exist_ok=True)
    path, done = directory() / name, directory() / f".{name}.done"
    with locked(directory() / f".{name}.lock"):
        if not done.exists():
            subprocess.run(["rm", "-rf", str(path)], check=True)
            make(path)
            done.touch()
    return path


def kept(name: str, content: str, make: Callable[[Path], None]) -> Path:
    """As `once`, for a file that an earlier run may have made from the same `content`."""
    stored = _STORE / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}-{name}"

    def take_or_make(path: Path) -> None:
        if not stored.exists():
            make(path)
            _STORE.mkdir(parents=True, exist_ok=True)
            for older in _STORE.glob(f"*-{name}"):
                older.unlink()
            _copy(path, stored.with_suffix(".part"))
            stored.with_suffix(".part").rename(stored)
        else:
            _copy(stored, path)
        path.chmod(0o644)

    return once(name, take_or_make)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "--reflink=auto", str(source), str(target)], check=True)


def memory() -> Path | None:
    """A file system in memory, if this machine has enough of it: a gigabyte takes a sixth of the CPU time of ext4."""
    if not _MEMORY.is_dir() or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return None
    room = min(psutil.virtual_memory().available, psutil.disk_usage(str(_MEMORY)).free)
    return _MEMORY if room >= _MEMORY_NEEDED else None
