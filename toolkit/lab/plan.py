"""The plan of a lab: frozen, and checked before anything is started."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolkit.support.errors import WrongInput

DEFAULT_NAME = "lab"
MOST_NODES = 64
MOST_GPUS = 16
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,19}")  # it becomes part of a socket's path, which has room for 108 bytes
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,19}")  # gres.conf reads a digit first, or a comma, as something else


@dataclass(frozen=True, slots=True)
class LabPlan:
    """The size and properties of a practice cluster.

    `memory_per_node` is in MiB; like `cpus_per_node` it is what Slurm schedules, not what the machine has.
    `port` is the first of `nodes + 1` consecutive TCP ports, None for any that are free.
    `real_gpus` are device files (`/dev/nvidia0`, ...) assigned to the nodes in turn; empty means stand-ins.
    """

    name: str = DEFAULT_NAME
    nodes: int = 4
    gpus_per_node: int = 2
    cpus_per_node: int = 4
    memory_per_node: int = 16_000
    gpu_type: str = "tesla"
    port: int | None = None
    real_gpus: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise WrongInput for a plan that Slurm cannot carry out."""
        if not _NAME.fullmatch(self.name):
            raise WrongInput(
                f"invalid lab name {self.name!r}",
                fix="Use at most 20 lower-case letters, digits and hyphens, for example: --name class-1",
            )
        _within("--nodes", self.nodes, 1, MOST_NODES)
        _within("--gpus-per-node", self.gpus_per_node, 0, MOST_GPUS)
        _within("--cpus-per-node", self.cpus_per_node, 1, 256)
        if not _TYPE.fullmatch(self.gpu_type):
            raise WrongInput(
                f"invalid --gpu-type {self.gpu_type!r}: use lower-case letters, digits and underscores, a letter first"
            )
        if self.port is not None:
            _within("--port", self.port, 1024, 65535 - self.nodes)

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))

    def gpus_of(self, node: str) -> tuple[str, ...]:
        """The real GPUs of one node. Assigned in turn: n1 gets the first, n2 the second, and so on, then n1 again."""
        return self.real_gpus[self.node_names.index(node) :: self.nodes]

    def gpu_count(self, node: str) -> int:
        return len(self.gpus_of(node)) if self.real_gpus else self.gpus_per_node


def _within(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise WrongInput(f"{option} is {value}, but must be from {least} to {most}")
