"""What the programs share: the directory of the server, its nodes, and its jobs, one file each."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = "pbs1"
CORES, GPUS, MEMORY = 8, 4, 64000  # of each node; MiB
QUEUES = ("workq", "gpuq", "gpu")
ENDED = ("F", "C")


def place() -> Path:
    return Path(os.environ["EMULATED_PBS"])


def is_torque() -> bool:
    return (place() / "torque").exists()


def keeps_history() -> bool:
    return (place() / "history").exists()


def nodes() -> list[str]:
    file = place() / "nodes"
    return file.read_text().split() if file.exists() else [SERVER]


@contextlib.contextmanager
def locked() -> Iterator[None]:
    with (place() / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_file(name).read_text())
    return found


def save(name: str, job: dict[str, Any]) -> None:
    new = _file(name).with_suffix(".new")
    new.write_text(json.dumps(job))
    new.rename(_file(name))


def update(name: str, **values: Any) -> dict[str, Any]:
    with locked():
        job = {**load(name), **values}
        save(name, job)
    return job


def jobs() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((place() / "jobs").glob("*.json"))}


def matching(identifier: str) -> dict[str, dict[str, Any]]:
    """The job of this number, or the tasks of this array."""
    whole = identifier if "." in identifier else f"{identifier}.{SERVER}"
    return {name: job for name, job in jobs().items() if whole in (name, job["array"])}


def fail(program: str, message: str, status: int) -> int:
    print(f"{program}: {message}", file=sys.stderr)
    return status


def _file(name: str) -> Path:
    return place() / "jobs" / f"{name}.json"
