"""The second link: what the runtime bound into the container, and whether there is a Python to ask with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gpu.host import Vendor
from toolkit.gpu.links.model import Judged
from toolkit.gpu.untrusted import unreadable_answer
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from toolkit.gpu.links.model import Seen
    from toolkit.gpu.probe import Probe

_ASK_LDCONFIG = "Ask the administrator whether `ldconfig -p | grep libcuda` prints the driver's libraries on this node."
_NO_PYTHON = Finding(
    "no-python-in-image",
    Severity.WARNING,
    "The image has no Python, which is needed to query the driver from inside.",
    "Try `ctk run IMAGE -- nvidia-smi -L`, which does not need Python.",
)


def judge_runtime(seen: Seen) -> Judged:
    """Whether the driver's libraries are in the container. Devices that are seen prove it."""
    probe = seen.probe
    if probe.unreadable is not None:
        return Judged((unreadable_answer(probe.unreadable),), GpuVerdict.NOT_KNOWN)
    if probe.python is None and not probe.ending.step:
        return Judged(_ended(probe), GpuVerdict.NOT_KNOWN)
    if seen.host.vendor is Vendor.AMD:
        return _amd(probe)
    bound = _bound(probe)
    if bound is not None:
        return Judged((bound,))
    if probe.devices or probe.python is None:
        return Judged(())
    return Judged((_not_bound(seen),), GpuVerdict.NOT_VISIBLE)


def _ended(probe: Probe) -> tuple[Finding, ...]:
    """Why nothing was asked: no Python, or one that ended before its first question."""
    ending = probe.ending
    if ending.status in (0, 97):
        return (_NO_PYTHON,)
    how = f"by {ending.signal}" if ending.signal else f"with status {ending.status}"
    if ending.seconds is not None:
        how = f"by ctk after {ending.seconds:g} s"
    last = f" Its last line: {ending.lines[-1]}" if ending.lines else ""
    return (
        Finding(
            "python-fails",
            Severity.ERROR,
            f"The image's Python was ended {how} before it could query the driver.{last}",
            "Try `ctk run IMAGE -- python3 -c 'import ctypes, json'`.",
        ),
    )


def _bound(probe: Probe) -> Finding | None:
    if not any(name.startswith("libcuda.so") for name in probe.bound_libraries):
        return None
    # The host's own OpenGL, which is not NVIDIA's, comes along with them.
    of_the_driver = [name for name in probe.bound_libraries if name.startswith(("libcuda", "libnv"))]
    number = count(len(of_the_driver), "library", "libraries")
    return Finding("driver-bound", Severity.OK, f"--nv bound {number} of the driver into the container.")


def _not_bound(seen: Seen) -> Finding:
    probe, driver = seen.probe, seen.host.driver
    reason = f": {probe.cuda_error}." if probe.cuda_error else "."
    if probe.cuda_init is not None:
        reason = f"; {probe.cuda_path} of the image was loaded instead (cuInit returned {probe.cuda_init})."
    if any(name.startswith("libnvidia-") for name in probe.bound_libraries):
        return Finding(
            "libcuda-not-bound",
            Severity.ERROR,
            f"--nv bound some libraries of the driver, but not libcuda{reason}",
            "Ask the administrator to look at `ldconfig -p | grep libcuda` on this node: the package with libcuda is "
            "missing there, or the loader's cache is old.",
        )
    if probe.nvidia_smi:
        return Finding(
            "nvidia-smi-without-libraries",
            Severity.ERROR,
            f"--nv bound nvidia-smi, but no library of the driver{reason}",
            _ASK_LDCONFIG,
        )
    return Finding(
        "driver-not-bound",
        Severity.ERROR,
        f"The host has a GPU, but --nv bound nothing of its driver {driver}{reason}",
        _ASK_LDCONFIG,
    )


def _amd(probe: Probe) -> Judged:
    number = count(len(probe.device_files) - 1, "GPU device")
    bound = Finding("devices-bound", Severity.OK, f"--rocm bound /dev/kfd and {number} into the container.")
    if probe.devices:
        return Judged((bound,) if "/dev/kfd" in probe.device_files else ())
    if "/dev/kfd" not in probe.device_files:
        missing = Finding(
            "kfd-not-bound",
            Severity.ERROR,
            "--rocm bound no /dev/kfd into the container.",
            "Check that /dev/kfd is on this node, and that the site's configuration of the runtime mounts /dev.",
        )
        return Judged((missing,), GpuVerdict.NOT_VISIBLE)
    if probe.writable is False:
        closed = Finding(
            "kfd-not-permitted",
            Severity.ERROR,
            "This user may not open /dev/kfd.",
            "Ask the administrator for the groups render and video (`ls -l /dev/kfd /dev/dri`).",
        )
        return Judged((closed,), GpuVerdict.NOT_VISIBLE)
    return Judged((bound,))
