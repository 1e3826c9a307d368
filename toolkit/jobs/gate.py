"""The GPU gate as lines for any script of bash: the lines that a script of `ctk sbatch` has before its program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.jobs.quoting import quoted
from toolkit.runtime.engine import NAMES
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


def gate_lines(image: str, *, userns: bool, check: GateCheck | None = None) -> str:
    """The gate for `image`, as the runtime must see it: ends the script with status 1 if a GPU cannot be used."""
    arguments = exec_arguments(image, (), gpu=True, userns=userns)
    return render(
        "sbatch/print-gate.sh.j2",
        limit=LIMIT,
        gate_check=gate_values(check),
        find_runtime=" || ".join(f"command -v {name}" for name in NAMES),
        arguments=" ".join(map(quoted, arguments)),
    )
