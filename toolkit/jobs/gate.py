"""The GPU gate as lines for any script of bash: the lines that a script of `ctk sbatch` has before its program."""

from __future__ import annotations

from toolkit.jobs.quoting import quoted
from toolkit.runtime.engine import NAMES
from toolkit.runtime.options import exec_arguments
from toolkit.support.templates import render

# Seconds for the driver's answer. On a node with many GPUs and no persistence daemon, the first cuInit takes tens of
# seconds.
LIMIT = 60


def gate_lines(image: str, *, userns: bool) -> str:
    """The gate for `image`, as the runtime must see it: ends the script with status 1 if a GPU cannot be used."""
    arguments = exec_arguments(image, (), gpu=True, userns=userns)
    return render(
        "sbatch/print-gate.sh.j2",
        limit=LIMIT,
        find_runtime=" || ".join(f"command -v {name}" for name in NAMES),
        arguments=" ".join(map(quoted, arguments)),
    )
