"""Job, Script and Submission: command and resources, the text for a scheduler, and the submitted job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.inventory.formats.layers import NONE, Layers
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.requests import NO_TEMPLATES, RequestTemplates
from toolkit.scheduler.resources import Resources
from toolkit.support.enums import StrEnum

if TYPE_CHECKING:
    from pathlib import Path

# What a job's script passes on to its program.
SIGNALS = ("TERM", "USR1", "USR2", "INT", "HUP", "CONT")


@dataclass(frozen=True, slots=True)
class Directive:
    """One more option for the scheduler, in its language: `--name=value` of sbatch, `-name value` of qsub."""

    name: str
    value: str | None = None

    @property
    def gpus(self) -> int:
        """How many GPUs `-l gpu=2` of qsub names, for a node or for a slot of it; 0 if it names none."""
        match = re.search(r"(?:^|[,:+ ])n?gpus?=([0-9]{1,4})(?![0-9])", self.value or "") if self.name == "l" else None
        return int(match[1]) if match else 0

    @property
    def asks_for_gpus(self) -> bool:
        """Whether this gives the job GPUs in another way than `--gpus`: `--gres=gpu:1`, `-l s_gpu=1`."""
        if self.name == "l":  # qsub
            return re.search(r"(?:^|[,:+ ])\w*gpu\w*=[1-9]", self.value or "") is not None
        parts = [part.split(":") for part in (self.value or "").split(",")]
        if self.name.startswith("gpus-per-"):
            return any(part[-1] != "0" for part in parts)
        return self.name == "gres" and any(part[0] == "gpu" and part[-1] != "0" for part in parts)


class GateKind(StrEnum):
    """What the gate asks on each node: the driver, or a framework of the image as well."""

    DRIVER = "driver"
    FRAMEWORK = "framework"


@dataclass(frozen=True, slots=True)
class GateCheck:
    """What the gate has a framework do: its name, and Python text for the interpreter of this path in the image."""

    title: str
    text: str
    interpreter: str


@dataclass(frozen=True, slots=True)
class Job(Resources):
    """A command and its resources.

    `directory` is the directory that the job is to be submitted from, absolute; only one with a `%` is written down.
    `image` is as the script says it: relative to that directory, or absolute. `environment` is written into the script;
    the variables of `inherited` come from the environment that the job has on its node, those of `env_file` from a
    private file that is read there. `runtime` is the site's own container runtime, a path or a name, which comes before
    those on PATH; `userns` is for one that needs `--userns` where the job runs.
    `gate`: each node checks the GPUs that the job asks for before the program starts; `gate_check` has a
    framework compute on them, too. `monitor`: the log ends with the use of each GPU. `layers` are those of the image
    when the script is written, `provenance` are lines that say what image that was. `directives` are options in the
    language of the job's scheduler; `requests` are the site's own ways to ask for resources. `modules` are loaded
    before the runtime is looked for; `module_setup` is a file that defines `module` where it is not defined.
    `results`: the job gets a directory for its results. `node_tmp`: TMPDIR is on the node's own disk. `line_buffered`:
    the program writes each line at once. `arguments` are given to the scheduler's program at submission, besides those
    of `requests`. `umask` is the one that the job gets where the scheduler would give it its own.
    """

    name: str
    image: str
    command: tuple[str, ...]
    binds: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    inherited: tuple[str, ...] = ()
    env_file: str | None = None
    directives: tuple[Directive, ...] = ()
    runtime: str | None = None
    userns: bool = False
    directory: str = "."
    gate: bool = True
    gate_check: GateCheck | None = None
    monitor: bool = False
    layers: Layers = NONE
    requests: RequestTemplates = NO_TEMPLATES
    modules: tuple[str, ...] = ()
    module_setup: str | None = None
    provenance: tuple[str, ...] = ()
    results: bool = False
    node_tmp: bool = False
    line_buffered: bool = False
    arguments: tuple[str, ...] = ()
    umask: int | None = None

    @property
    def uses_gpu(self) -> bool:
        """Whether the container is to see the GPU driver."""
        return bool(self.gpus and self.gpus.count) or any(directive.asks_for_gpus for directive in self.directives)

    @property
    def tasks(self) -> int:
        """How many processes the scheduler starts."""
        return (self.nodes or 1) * (self.tasks_per_node or 1)

    def log(self, job_id: str = "ID") -> str:
        """Where the job's words are, relative to the directory that it was submitted from."""
        return f"logs/{self.name}-{_number(job_id)}{'_*' if self.array else ''}.log"

    def first_log(self, job_id: str) -> str:
        """The log of the first task of an array, else the log: one file, which need not exist yet."""
        return f"logs/{self.name}-{_number(job_id)}{f'_{self.array.first}' if self.array else ''}.log"


def _number(job_id: str) -> str:
    """`12` of PBS's `12.host` and `12[].host`."""
    return re.split(r"[.\[]", job_id, maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Script:
    """The text of a job for one scheduler, and the file that holds it or will hold it."""

    job: Job
    text: str
    path: Path
    scheduler: Scheduler = Scheduler.SLURM


@dataclass(frozen=True, slots=True)
class Submission:
    """A submitted script, and its job ID."""

    script: Script
    job_id: str
