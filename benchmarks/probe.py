"""The cost of checking the GPU beyond the start of the container: `ctk check-gpu` compared with an empty Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import debian_12, environment_of_ctk, interleaved
from benchmarks.section import Section, Table, Target
from toolkit import __version__
from toolkit.runtime.engine import find_runtime
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_BARE = "apptainer exec … python3 -c ''"


def run() -> Section:
    """Measure on this host, whether it has a GPU or not."""
    ctk = environment_of_ctk() / "ctk"
    image = debian_12(ctk)
    # Without a GPU the exit status is 3.
    check = ("sh", "-c", '"$@" || [ $? -eq 3 ]', "sh", ctk, "check-gpu", image)
    commands: dict[str, Sequence[str | Path]] = {
        "ctk check-gpu": check,
        "ctk run … python3 -c ''": (ctk, "run", image, "--", "python3", "-c", ""),
        _BARE: find_runtime(load_site()).exec(image, ["python3", "-c", ""], gpu=False),
    }
    times = interleaved(commands, rounds=15)
    ours = times["ctk check-gpu"].median
    beyond = ours - times[_BARE].median
    rows = tuple(
        (f"`{name}`", f"{timing.median:.2f}", f"{timing.fastest:.2f}", f"{ours / timing.median:.2f}")
        for name, timing in times.items()
    )
    return Section(
        title="The probe",
        words="Whole commands on an image of Debian 12 with Python, in turn, 15 rounds after one that warms up.",
        tables=(Table("A look from inside", ("command", "median, s", "fastest, s", "ctk ÷ this"), rows),),
        targets=(Target(f"under a second beyond the container's own start: {beyond:.2f} s", beyond < 1),),
        versions=(f"ctk {__version__}",),
    )
