"""The GPU monitor without a GPU: what it calls idle, and what it says on nodes that it cannot measure."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from toolkit.jobs.dialects.words import SLURM
from toolkit.lab.configuration import CLUSTER_PREFIX
from toolkit.lab.tracking import MARK_VARIABLE
from toolkit.support.paths import shipped
from toolkit.support.templates import render

MONITOR = render("sbatch/blocks/monitor.j2", scheduler=SLURM)
PROGRAM = Path(str(shipped("sbatch"))) / "blocks" / "monitor.py"


@pytest.mark.parametrize(
    ("peak", "processes", "reason"),
    [
        (0, False, "utilisation 0 %, no process on it"),
        (0, True, "utilisation 0 %"),
        (0, None, "utilisation 0 %"),
        (70, False, None),  # a container or permissions hide the processes
        (70, True, None),
        (None, False, "no process on it"),
        (None, True, None),
    ],
)
def test_monitor_gpu_is_idle_only_if_nothing_shows_its_use(
    peak: int | None, processes: bool | None, reason: str | None
) -> None:
    scope: dict[str, object] = {"__name__": "monitor"}
    exec(compile(PROGRAM.read_text(), str(PROGRAM), "exec"), scope)  # noqa: S102 - a script of ctk
    gpu = scope["Gpu"](None, "0", None)  # type: ignore[operator]
    gpu.samples, gpu.processes = 3, processes
    if peak is not None:
        gpu.used.add(peak, 1.0)
    assert gpu.idle() == reason


def test_monitor_drops_what_no_gpu_can_have() -> None:
    scope: dict[str, object] = {"__name__": "monitor"}
    exec(compile(PROGRAM.read_text(), str(PROGRAM), "exec"), scope)  # noqa: S102 - a script of ctk
    gpu = scope["Gpu"](Absurd(), "0", None)  # type: ignore[operator]
    for _ in range(3):
        gpu.sample(1.0)
    assert gpu.line() == "NVML says nothing of it"


class Absurd:
    """NVML with figures that cannot be: 2**32 - 1 % of time, more memory than there is, an energy that falls."""

    energy = 10**12

    def nvmlDeviceGetUtilizationRates(self, handle: object, answer: Any) -> int:  # noqa: N802
        answer._obj.gpu = 2**32 - 1
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: object, answer: Any) -> int:  # noqa: N802
        answer._obj.used = 2**60
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: object, answer: Any) -> int:  # noqa: N802
        self.energy -= 10**9
        answer._obj.value = self.energy
        return 0


def node(directory: Path, runtime: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the monitor's part of one node; `runtime` is what happens instead of the container."""
    script = f'{MONITOR}\ngpu_monitor_node "$gpu_monitor_python" 5e1c90ab32f7 bash -c {runtime!r}\n'
    environment = {"PATH": "/usr/bin:/bin", "SLURMD_NODENAME": "n7", **more}
    return subprocess.run(
        ["bash", "-c", script], env=environment, cwd=directory, input="", text=True, capture_output=True, check=False
    )


@pytest.mark.parametrize("runtime", ["exit 97", "exit 1"])
def test_monitor_that_measures_nothing_is_no_error_of_the_job(tmp_path: Path, runtime: str) -> None:
    done = node(tmp_path, runtime)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("nothing was measured on n7: neither the node" in done.stdout) == (runtime == "exit 97")


def test_monitor_names_the_missing_library_once(tmp_path: Path) -> None:
    """In an image with a Python that has no NVML."""
    python = subprocess.run(["which", "python3"], text=True, capture_output=True, check=True).stdout.strip()
    done = subprocess.run([python, PROGRAM], input="", text=True, capture_output=True, check=False)
    assert done.stdout.count("libnvidia-ml.so.1") == 1, done.stdout


def test_monitor_stand_in_gpu_is_not_measured(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu/gpu0").symlink_to(os.devnull)
    lab = {MARK_VARIABLE: str(tmp_path), "SLURM_CLUSTER_NAME": f"{CLUSTER_PREFIX}default"}
    done = node(tmp_path, "echo never", **lab)
    assert (done.returncode, done.stdout) == (0, "ctk[5e1c90ab32f7]: GPU monitor: n7: stand-in GPU, not measured\n")
