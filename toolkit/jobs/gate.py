"""The GPU gate as lines for a script of bash on any scheduler: those that ctk's own scripts have before the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.formats.layers import NONE, Layers
from toolkit.jobs.dialects.words import ANY
from toolkit.jobs.quoting import quoted
from toolkit.runtime.engine import NAMES
from toolkit.runtime.layer_check import CHECK, CODE, FIX, STATUS
from toolkit.runtime.options import exec_arguments
from toolkit.support.templates import render

if TYPE_CHECKING:
    from toolkit.jobs.model import GateCheck, Job

# Seconds for one call of the driver. On a node with many GPUs and no persistence daemon, the first cuInit takes tens of
# seconds.
LIMIT = 60
# Seconds for the start of the container: from a cold parallel file system, or where the image is unpacked first, it
# takes minutes, which say nothing about the GPU.
START_LIMIT = 600
END = "CTK_GATE_CHECK"


def gate_values(check: GateCheck | None) -> dict[str, str] | None:
    """What the template writes of a framework's check; None if there is none."""
    if check is None:
        return None
    if any(line == END for line in check.text.splitlines()):  # no text of ctk has it
        raise ValueError(END)
    return {"title": quoted(check.title), "text": check.text, "interpreter": quoted(check.interpreter), "end": END}


def layer_values(layers: Layers) -> dict[str, object]:
    """What the templates write of an image's layers and of the check for them."""
    return {
        "layers": layers,
        "layer_check": CHECK.rstrip("\n"),
        "layer_code": CODE,
        "layer_fix": FIX,
        "layer_status": STATUS,
    }


def request_values(job: Job, *, slurm: bool) -> dict[str, int]:
    """The GPUs that the script asks for: on each node, and in all; 0 where another one decides that.

    On Slurm these are for what Slurm itself does not say in the job. A `--gpus` of the site's own line is no sum: who
    submits the script with another one replaces it, and no variable says so.
    """
    total, nodes = job.gpus.count if job.gpus else 0, job.nodes or 1
    if slurm:
        own_line = job.requests.resources is None and job.requests.gpus is None
        return {"own_gpus": total if nodes == 1 else 0, "own_total": total if own_line else 0}
    each = total // nodes or max((directive.gpus for directive in job.directives), default=0)
    return {"own_gpus": each, "own_total": total}


def gate_lines(image: str, *, userns: bool, check: GateCheck | None = None, layers: Layers = NONE) -> str:
    """The gate for `image`, as the runtime must see it: ends the script with status 1 if a GPU cannot be used.

    The status is 3 if the runtime does not mount the layers of the image.
    """
    arguments = exec_arguments(image, (), gpu=True, userns=userns)
    return render(
        "sbatch/print-gate.j2",
        scheduler=ANY,
        image=quoted(image),
        limit=LIMIT,
        start_limit=START_LIMIT,
        own_gpus=0,
        own_total=0,
        gate_check=gate_values(check),
        **layer_values(layers),
        find_runtime=" || ".join(f"command -v {name}" for name in NAMES),
        arguments=" ".join(map(quoted, arguments)),
    )
