"""A lab of a user, driven as that user would drive it; and what is left when it is gone."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.real.conftest import User


def eventually(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.2)


@dataclass
class OwnLab:
    """One lab with its user, directory and extra settings (a home elsewhere, ...)."""

    user: User
    directory: Path
    name: str
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def ctk(self, command: str, *words: str, status: int = 0) -> str:
        """`ctk lab COMMAND --name NAME …`; what it printed on both streams."""
        argv = ("lab", command, *words, "--name", self.name)
        done = self.user.ctk(*argv, cwd=self.directory, env=self.settings, status=status)
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def up(self, *words: str) -> Path:
        """Start it; return its directory."""
        shown = json.loads(self.ctk("up", *words, "--json"))
        self.environment = shown["environment"]
        return Path(self.environment["SLURM_CONF"]).parent

    def run(self, *argv: str, status: int | None = 0) -> str:
        return self.user.run(*argv, cwd=self.directory, env={**self.settings, **self.environment}, status=status).stdout

    def submit(self, script: str, *options: str) -> str:
        """Submit a bash script with plain sbatch, as a user does; return the job's number."""
        path = self.directory / f"job-{time.monotonic_ns()}.sh"
        self.user.run("tee", path, cwd=self.directory, input=f"#!/bin/bash\n{script}\n")
        return self.run("sbatch", "--parsable", *options, str(path)).strip()

    def status(self) -> dict[str, Any]:
        return json.loads(self.run(str(self.user.program), "lab", "status", "--name", self.name, "--json"))

    def finished(self, job: str) -> list[dict[str, Any]]:
        """The runs of a job that have ended, oldest first."""
        return [run for run in self.status()["finished"] if run["job"] == job]

    def finish(self, job: str, seconds: float = 60) -> dict[str, Any]:
        """Wait until a job has ended for good; return its last run."""
        eventually(lambda: not self.run("squeue", "-h", "-j", job, status=None), f"job {job} to end", seconds)
        eventually(lambda: bool(self.finished(job)), f"job {job} to be accounted for")
        return self.finished(job)[-1]


@dataclass(frozen=True)
class Traces:
    """What a user has on this machine that outlives a command."""

    processes: dict[int, str]
    sockets: frozenset[str]
    files: frozenset[str]
    shared_memory: frozenset[str]

    def beyond(self, before: Traces) -> dict[str, Any]:
        """What is here and was not before; empty values where nothing is."""
        return {
            "processes": {pid: words for pid, words in self.processes.items() if pid not in before.processes},
            "sockets": sorted(self.sockets - before.sockets),
            "files": sorted(self.files - before.files),
            "shared memory": sorted(self.shared_memory - before.shared_memory),
        }


NOTHING: dict[str, Any] = {"processes": {}, "sockets": [], "files": [], "shared memory": []}


def traces(lab: OwnLab, place: Path | None = None, pids: frozenset[int] = frozenset()) -> Traces:
    """Look for a lab's traces. The machine may be busy with other things of the same user, so they are looked for by
    the lab's directory `place` and by the numbers `pids` that its jobs wrote down: not by how ctk finds them.
    """
    home = Path(lab.settings.get("HOME", lab.user.home))
    state = home / ".local" / "state" / "ctk"
    words = str(place) if place else f"/tmp/ctk-{lab.name}-"
    processes = {
        int(entry.name): _about(entry)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and (int(entry.name) in pids or words in _about(entry)) and _lives(int(entry.name))
    }
    unix = {line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if words in line}
    owned = psutil.net_connections("inet")
    tcp = {f"{entry.laddr}" for entry in owned if entry.status == psutil.CONN_LISTEN and entry.pid in processes}
    files = {str(path) for path in state.rglob("*") if path.is_file()} | {
        str(path) for path in Path("/tmp").glob(f"ctk-{lab.name}-*")
    }
    shared = {path.name for path in Path("/dev/shm").iterdir() if path.owner() == lab.user.name and path.is_file()}
    system_v = {" ".join(line.split()[:2]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
    return Traces(processes, frozenset(unix | tcp), frozenset(files), frozenset(shared | system_v))


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and pid != os.getpid()
    except psutil.NoSuchProcess:
        return False


def _about(entry: Path) -> str:
    """The command line, environment and directory of a process, as far as the kernel tells."""
    parts = []
    for name in ("cmdline", "environ"):
        try:
            parts.append((entry / name).read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    with contextlib.suppress(OSError):
        parts.append(str((entry / "cwd").readlink()))
    return " ".join(parts)
