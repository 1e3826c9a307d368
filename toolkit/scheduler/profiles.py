"""A cluster profile: a site as data, read from `sbatch/clusters/NAME.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.scheduler.requests import RequestTemplates

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.scheduler.programs import Scheduler


@dataclass(frozen=True, slots=True)
class GpuType:
    """A GPU type of a cluster. Unknown values are None.

    `type` is what the scheduler calls it (`tesla`), `model` what its vendor does (`V100`). `capability` is the compute
    capability (`7.0`), `memory` that of one GPU in bytes, `driver` the NVIDIA driver of its nodes.
    """

    type: str
    model: str | None = None
    capability: str | None = None
    memory: int | None = None
    driver: str | None = None


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What a job may ask for in all, over its nodes; None: no limit. Memory is in bytes.

    A minimum is for jobs that ask for the resource: PBS lets the others in (chk_resc_limits in svr_jobfunc.c of
    OpenPBS; seen with 23.06).
    """

    min_gpus: int | None = None
    max_gpus: int | None = None
    min_cores: int | None = None
    max_cores: int | None = None
    max_memory: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    min_time: int | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, queue or resource type, with what a job can get there. None: no limit, or it is unknown.

    Times are in seconds, memory in bytes. `cores`, `memory` and `gpus` are those of one node, or of one unit of a
    resource type; `gpu_types` are keys of the profile's GPU types. `node_hours` is the limit of nodes x hours of a job.
    `price` is for one node and hour, in the profile's unit. `job` are limits of a whole job. A routing queue of PBS has
    `destinations`, and a job the limits of that which takes it.
    """

    name: str
    is_default: bool = False
    description: str = ""
    max_time: int | None = None
    default_time: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    cores: int | None = None
    memory: int | None = None
    gpus: int | None = None
    gpu_types: tuple[str, ...] = ()
    node_hours: int | None = None
    price: float | None = None
    job: JobLimits = JobLimits()
    destinations: tuple[Partition, ...] = ()


@dataclass(frozen=True, slots=True)
class Proxy:
    """The web proxy of the compute nodes: its URL, and the hosts that are reached without it."""

    url: str
    exceptions: tuple[str, ...] = ()

    def variables(self) -> tuple[tuple[str, str], ...]:
        """The variables that programs read, in both spellings: curl reads `http_proxy` in lower case only."""
        pairs = [(name, self.url) for name in ("http_proxy", "https_proxy")]
        pairs += [("no_proxy", ",".join(self.exceptions))] if self.exceptions else []
        return (*pairs, *((name.upper(), value) for name, value in pairs))


@dataclass(frozen=True, slots=True)
class Modules:
    """The modules that a job loads. `setup` is a file that defines `module` in a script, where it is not defined."""

    names: tuple[str, ...] = ()
    setup: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A cluster, as its profile describes it. What the profile does not say is None or ().

    `required` are keys of `toolkit.scheduler.resources.OPTIONS` without which the site refuses a job. `internet` says
    whether compute nodes reach it. `max_tasks` is the largest number of tasks of an array. `unit` is that of the prices
    (`points`). `sources` say where the facts come from, `checked` (ISO) when that was read.
    """

    name: str
    path: Path
    scheduler: Scheduler
    description: str = ""
    sources: tuple[str, ...] = ()
    checked: str | None = None
    required: tuple[str, ...] = ()
    partitions: tuple[Partition, ...] = ()
    gpu_types: tuple[GpuType, ...] = ()
    requests: RequestTemplates = field(default_factory=RequestTemplates)
    modules: Modules = field(default_factory=Modules)
    binds: tuple[str, ...] = ()
    proxy: Proxy | None = None
    internet: bool | None = None
    max_tasks: int | None = None
    unit: str | None = None

    def partition(self, name: str) -> Partition | None:
        """The partition of that name; None if the profile does not have it."""
        return next((partition for partition in self.partitions if partition.name == name), None)

    def gpu_type(self, name: str) -> GpuType | None:
        """The GPU type that the scheduler calls so; None if the profile does not have it."""
        return next((gpu for gpu in self.gpu_types if gpu.type == name), None)

    @property
    def default_partition(self) -> Partition | None:
        """The partition of a job that names none."""
        marked = [partition for partition in self.partitions if partition.is_default]
        return marked[0] if marked else self.partitions[0] if len(self.partitions) == 1 else None
