"""The state of a job in neutral terms, the same for every scheduler."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.support.enums import StrEnum


class State(StrEnum):
    """Where a job is. `gone`: the scheduler no longer knows the job, and nothing says how it ended."""

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    NODE_FAILED = "node-failed"
    CANCELLED = "cancelled"
    GONE = "gone"

    @property
    def is_final(self) -> bool:
        """Whether the job will not run any more."""
        return self not in (State.PENDING, State.HELD, State.RUNNING)


@dataclass(frozen=True, slots=True)
class JobState:
    """What a scheduler says about one job, or one task of an array.

    `job` is its number as the scheduler's programs take it (`12`, `12_3` of Slurm, `12.3` of Grid Engine, `12[3].host`
    of PBS). `reported` is the scheduler's own word for the state. `reason` says in plain words why the job waits or how
    it ended, empty if there is nothing to say. `exit_status` and `signal` are None until they are known.
    """

    job: str
    state: State
    reported: str = ""
    reason: str = ""
    exit_status: int | None = None
    signal: int | None = None
    nodes: str = ""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a scheduler knows of one compute node. `memory` is in MiB, 0 if unknown; so are the others."""

    name: str
    cpus: int = 0
    memory: int = 0
    gpus: int = 0
    gpu_type: str | None = None
    usable: bool = True
    partitions: tuple[str, ...] = ()


def join_reasons(*reasons: str) -> str:
    """The reasons that there are, in one line."""
    return "; ".join(reason for reason in reasons if reason)
