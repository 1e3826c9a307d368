"""Jobs of ctk on a real Slurm, written, submitted and looked at as a user does it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.real.labs import eventually
from tests.tokens import without_token

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import PracticeCluster

# squeue(1), JOB STATE CODES: those that no other one follows, but a requeue.
_FINAL = ("CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT")


class Jobs:
    """A directory of the user who owns the practice cluster, and what happens to jobs submitted from it."""

    def __init__(self, lab: PracticeCluster, directory: Path, image: Path) -> None:
        self.lab, self.directory, self.image = lab, directory, image

    def run(self, *argv: str, status: int | None = 0) -> str:
        return self.lab.user.run(*argv, cwd=self.directory, env=self.lab.environment, status=status).stdout

    def write(self, name: str, *words: str) -> None:
        """Write a script with ctk: options of ctk sbatch, and the command after --."""
        command = ("sbatch", "-J", name, "--image", str(self.image), *words)
        self.lab.user.ctk(*command, cwd=self.directory, env=self.lab.environment)

    def submit(self, name: str, *options: str) -> str:
        """Submit a script with plain sbatch, as a user does."""
        return self.run("sbatch", "--parsable", *options, f"{name}.sbatch").strip()

    def show(self, job_id: str, field: str) -> str:
        shown = self.run("scontrol", "show", "job", "-o", job_id)
        match = re.search(rf"\b{field}=(.*?)(?= \S+=|$)", shown, re.MULTILINE)
        return match[1].strip() if match else ""

    def log(self, stem: str) -> str:
        path = self.directory / "logs" / f"{stem}.log"
        return without_token(path.read_text()) if path.exists() else ""

    def ended(self, job_id: str) -> bool:
        return self.show(job_id, "JobState") in _FINAL

    def finish(self, job_id: str, seconds: float = 60) -> str:
        """Wait for the end of a job; return its state."""
        eventually(lambda: self.ended(job_id), f"job {job_id} to end", seconds)
        return self.show(job_id, "JobState")
