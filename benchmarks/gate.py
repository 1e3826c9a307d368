"""The cost of the GPU gate of a job beyond the start of a container, over a stand-in for the driver."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import debian_12, environment_of_ctk, interleaved
from benchmarks.section import Section, Table, Target
from tests.driver import compile_driver
from toolkit import __version__
from toolkit.jobs.gate import gate_lines
from toolkit.runtime.engine import find_runtime, root_needs_userns
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROUNDS = 11
_BARE = "apptainer exec --nv … true"
_SHIM = """#!/bin/sh
for library in {directory}/*.so.1; do echo "	$(basename "$library") (libc6,x86-64) => $library"; done
exec /sbin/ldconfig -p
"""


def run() -> Section:
    """Measure the lines of `ctk check-gpu --print-gate` with an image that has Python."""
    ctk = environment_of_ctk() / "ctk"
    image = debian_12(ctk)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        shim = directory / "bin" / "ldconfig.real"  # the runtime asks it for the driver's libraries
        shim.parent.mkdir()
        shim.write_text(_SHIM.format(directory=compile_driver(directory / "driver")))
        shim.chmod(0o755)
        gate = directory / "gate.sh"
        gate.write_text(gate_lines(str(image), userns=root_needs_userns()))
        path = f"PATH={shim.parent}:{os.environ['PATH']}"
        bare = find_runtime(load_site()).exec(image, ["true"], gpu=True)
        commands: dict[str, Sequence[str | Path]] = {
            "the gate": ("env", path, "bash", gate),
            _BARE: ("env", path, "bash", "-c", shlex.join(map(str, bare))),
        }
        times = interleaved(commands, rounds=_ROUNDS)
    beyond = times["the gate"].median - times[_BARE].median
    rows = tuple((f"`{name}`", f"{timing.median:.2f}", f"{timing.fastest:.2f}") for name, timing in times.items())
    return Section(
        title="The GPU gate",
        words="Whole commands on an image of Debian 12 with Python, in turn, "
        f"{_ROUNDS} rounds after one that warms up. The driver is a stand-in that answers at once.",
        tables=(Table("In front of a job's program", ("command", "median, s", "fastest, s"), rows),),
        targets=(Target(f"at most 0.3 s beyond the container's start: {beyond:.2f} s", beyond <= 0.3),),
        versions=(f"ctk {__version__}",),
    )
