"""The cost of checking the GPU beyond the start of the container, for the driver alone: no framework is imported."""

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

_CHECK = "ctk check-gpu --framework none"
_BARE = "apptainer exec --nv … true"
_MOST = 0.3  # seconds beyond the start


def run() -> Section:
    """Measure on this host, whether it has a GPU or not."""
    ctk = environment_of_ctk() / "ctk"
    image = debian_12(ctk)
    # Without a GPU the exit status is 3.
    check = ("sh", "-c", '"$@" || [ $? -eq 3 ]', "sh", ctk, "check-gpu", image, "--framework", "none")
    runtime = find_runtime(load_site())
    commands: dict[str, Sequence[str | Path]] = {
        _CHECK: check,
        "ctk run … true": (ctk, "run", image, "--", "true"),
        "apptainer exec … python3 -c ''": runtime.exec(image, ["python3", "-c", ""], gpu=False),
        _BARE: runtime.exec(image, ["true"], gpu=True),
    }
    times = interleaved(commands, rounds=11)
    ours = times[_CHECK].median
    beyond = ours - times[_BARE].median
    rows = tuple(
        (f"`{name}`", f"{timing.median:.2f}", f"{timing.fastest:.2f}", f"{ours / timing.median:.2f}")
        for name, timing in times.items()
    )
    return Section(
        title="The probe",
        words="Whole commands on an image of Debian 12 with Python, in turn, 11 rounds after one that warms up.\n"
        "The image is audited while the driver is asked. Without a GPU the driver's own start is missing.",
        tables=(Table("A look from inside", ("command", "median, s", "fastest, s", "ctk ÷ this"), rows),),
        targets=(Target(f"at most {_MOST} s beyond the container's own start: {beyond:.2f} s", beyond <= _MOST),),
        versions=(f"ctk {__version__}",),
    )
