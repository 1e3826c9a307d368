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
    from toolkit.jobs.model import GateCheck

# Seconds for the driver's answer. On a node with many GPUs and no persistence daemon, the first cuInit takes tens of
# seconds.
LIMIT = 60
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
        gate_check=gate_values(check),
        **layer_values(layers),
        find_runtime=" || ".join(f"command -v {name}" for name in NAMES),
        arguments=" ".join(map(quoted, arguments)),
    )
