"""Why the GPU is, or is not, visible from inside an image: rules over what the host and the probe have shown.

Error codes are those of cuda.h (CUresult, CUDA 13) and nvml.h (nvmlReturn_t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from toolkit.gpu.host import HostGpu
    from toolkit.gpu.probe import Probe


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict and the findings that led to it."""

    verdict: GpuVerdict
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer of cuInit: the finding's code, what it means, and what to do about it."""

    code: str
    meaning: str
    fix: str


_CUDA_ANSWERS = {
    34: _Answer(
        code="stub-library",
        meaning="the loaded libcuda is a stub, for linking only",
        fix="The stub's directory comes before the driver's in the image: remove `stubs` from LD_LIBRARY_PATH "
        "and /etc/ld.so.conf.d.",
    ),
    46: _Answer(
        code="device-unavailable",
        meaning="the GPU is in exclusive mode and used by another process",
        fix="Wait for the other process (nvidia-smi shows it), or request another node.",
    ),
    100: _Answer(
        code="no-visible-device",
        meaning="the driver works but shows no GPU to this process",
        fix="Check CUDA_VISIBLE_DEVICES, and request a GPU from the scheduler (`--gpus 1`): a job sees only these.",
    ),
    802: _Answer(
        code="system-not-ready",
        meaning="the GPUs of this node are not initialised: the fabric manager is not running",
        fix="Ask the administrator to start nvidia-fabricmanager.",
    ),
    803: _Answer(
        code="driver-mismatch",
        meaning="the image's libcuda and the kernel module have different versions",
        fix="If the library comes from a compat directory of the image, remove it from "
        "LD_LIBRARY_PATH; otherwise the node needs a reboot after its driver update.",
    ),
    804: _Answer(
        code="compat-not-supported",
        meaning="the image's forward-compatibility libcuda works only on data-centre GPUs",
        fix="Remove the compat directory from LD_LIBRARY_PATH in the image.",
    ),
    999: _Answer(
        code="unknown-driver-error",
        meaning="the driver reported an unknown error; most often /dev/nvidia-uvm is missing",
        fix="Ask the administrator to load nvidia_uvm at boot (`nvidia-modprobe -u -c=0`).",
    ),
}
_NO_PYTHON = Finding(
    "no-python-in-image",
    Severity.WARNING,
    "The image has no Python, which is needed to query the driver from inside.",
    "Try `ctk run IMAGE -- nvidia-smi -L`, which does not need Python.",
)
_OTHER = _Answer(
    code="cuda-init-failed",
    meaning="the driver failed to start",
    fix="Send the file of `ctk doctor --report FILE` to the site.",
)


def diagnose(host: HostGpu, seen: Probe) -> Diagnosis:
    """Judge. What was seen from inside counts for more than what the host seems to have."""
    facts = (_host_fact(host), *_binding_facts(seen))
    if seen.devices:
        return Diagnosis(GpuVerdict.VISIBLE, (*facts, *_device_facts(seen)))
    if not host.present and seen.cuda_init is None:
        return Diagnosis(GpuVerdict.NO_GPU, facts)
    if seen.python is None:
        return Diagnosis(GpuVerdict.NOT_KNOWN, (*facts, _NO_PYTHON))
    return Diagnosis(GpuVerdict.NOT_VISIBLE, (*facts, _reason(host, seen)))


def _host_fact(host: HostGpu) -> Finding:
    if host.present:
        message = f"This host has {count(len(host.devices), 'GPU')}, driver {host.driver}."
        return Finding("host-gpu", Severity.OK, message)
    if host.driver:
        return Finding(
            "no-device-files",
            Severity.WARNING,
            f"This host has the NVIDIA driver {host.driver}, but no /dev/nvidia* device.",
            "Inside a job, request a GPU from the scheduler (`--gpus 1`).",
        )
    return Finding(
        "no-gpu-on-host",
        Severity.WARNING,
        "This host has no NVIDIA GPU: no driver is loaded"
        + (", though device files are there." if host.devices else "."),
        "Login nodes seldom have one: run this in a job on a GPU node.",
    )


def _binding_facts(seen: Probe) -> tuple[Finding, ...]:
    if seen.python is None:
        return ()
    if any(name.startswith("libcuda.so") for name in seen.bound_libraries):
        # The host's own OpenGL, which is not NVIDIA's, comes along with them.
        of_the_driver = [name for name in seen.bound_libraries if name.startswith(("libcuda", "libnv"))]
        number = count(len(of_the_driver), "library", "libraries")
        return (Finding("driver-bound", Severity.OK, f"--nv bound {number} of the driver into the container."),)
    return (Finding("driver-not-bound", Severity.INFO, "--nv bound no libcuda: the host has none."),)


def _device_facts(seen: Probe) -> tuple[Finding, ...]:
    version = f", CUDA up to {cuda_version_text(seen.cuda_version)}" if seen.cuda_version else ""
    driver = f"driver {seen.driver}" if seen.driver else "the driver"
    found = [
        Finding("gpu-visible", Severity.OK, f"From inside, {driver} shows {count(len(seen.devices), 'GPU')}{version}.")
    ]
    for number, device in enumerate(seen.devices):
        memory = f", {device.memory / 2**30:.0f} GiB" if device.memory else ""
        capability = ".".join(map(str, device.capability))
        found.append(
            Finding("gpu", Severity.OK, f"GPU {number}: {device.name}, compute capability {capability}{memory}.")
        )
    return tuple(found)


def _reason(host: HostGpu, seen: Probe) -> Finding:
    if seen.cuda_init is None:
        return _not_loaded(host, seen)
    # No device is an answer of its own (100), whichever call gives it.
    answer = _CUDA_ANSWERS.get(seen.cuda_init or 100, _OTHER)
    shown = f" CUDA_VISIBLE_DEVICES is {seen.visible_devices!r}." if seen.visible_devices is not None else ""
    where = f" It was loaded from {seen.cuda_path}." if seen.cuda_path else ""
    message = f"cuInit returned {seen.cuda_init}: {answer.meaning}.{where}{shown}"
    return Finding(answer.code, Severity.ERROR, message, answer.fix)


def _not_loaded(host: HostGpu, seen: Probe) -> Finding:
    error = seen.cuda_error or ""
    if "GLIBC_" in error:
        return Finding(
            "glibc-too-old",
            Severity.ERROR,
            f"The image's C library is too old for the host's driver: {error}.",
            "Start from a newer base; `ctk bases` lists them.",
        )
    if any(name.startswith("libnvidia-") for name in seen.bound_libraries):
        return Finding(
            "libcuda-not-bound",
            Severity.ERROR,
            f"--nv bound some libraries of the driver, but libcuda cannot be loaded: {error}.",
            "Ask the administrator to look at `ldconfig -p | grep libcuda` on this node; and see that the image's "
            "%environment does not overwrite LD_LIBRARY_PATH.",
        )
    return Finding(
        "driver-not-bound",
        Severity.ERROR,
        f"The host has a GPU, but --nv bound nothing of its driver {host.driver}: {error}.",
        "Ask the administrator whether `ldconfig -p | grep libcuda` prints the driver's libraries on this node.",
    )


def cuda_version_text(number: int) -> str:
    """12040 -> '12.4' (cuDriverGetVersion: 1000 * major + 10 * minor)."""
    return f"{number // 1000}.{number % 1000 // 10}"
