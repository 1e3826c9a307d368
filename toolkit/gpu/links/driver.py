"""The third link: what the driver answers inside the container. Codes are those of cuda.h and nvml.h."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gpu.answers import NO_DEVICE, answer
from toolkit.gpu.host import Vendor
from toolkit.gpu.links.devices import describe_devices, doubts_of_devices, failed_devices
from toolkit.gpu.links.model import Judged
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.gpu.visible_devices import available, unknown_entry
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from toolkit.gpu.links.model import Seen
    from toolkit.gpu.probe import Probe


def judge_driver(seen: Seen) -> Judged:
    """Whether the driver starts, and shows GPUs that can be used."""
    probe = seen.probe
    if probe.python is None:
        return Judged((_no_answer(probe),), GpuVerdict.NOT_VISIBLE)
    if not probe.devices:
        reason = _hip_reason(probe) if seen.host.vendor is Vendor.AMD else _reason(probe)
        return Judged((reason,), GpuVerdict.NOT_VISIBLE)
    failed = failed_devices(probe)
    verdict = None
    if failed:
        verdict = GpuVerdict.NOT_VISIBLE if len(failed) == len(probe.devices) else GpuVerdict.BROKEN
    shown = (_shown(probe), *describe_devices(probe))
    return Judged((*failed, *shown, *doubts_of_devices(probe), *_partly_visible(probe), *_nvml(probe)), verdict)


def _no_answer(probe: Probe) -> Finding:
    ending, call = probe.ending, probe.ending.step
    if ending.seconds is not None:
        return Finding(
            "driver-hangs",
            Severity.ERROR,
            f"The driver did not answer within {ending.seconds:g} s: {call} did not return.",
            "Request another node, and tell the administrator: a reset of the GPU or a reboot is needed. If the first "
            "start of the driver is slow on this node, use a longer --timeout.",
        )
    how = f"{ending.signal} ended the probe" if ending.signal else f"the probe ended with status {ending.status}"
    return Finding(
        "driver-crashes",
        Severity.ERROR,
        f"The driver crashed: {how} in {call}.",
        "Check whether the image brings its own libcuda (`ctk audit`), and try `ctk check-gpu` with another image: if "
        "that fails too, tell the administrator.",
    )


def _reason(probe: Probe) -> Finding:
    if probe.cuda_init is None:
        return _not_loaded(probe)
    # No device is an answer of its own, whichever call gives it.
    number = probe.cuda_init or NO_DEVICE
    if number == NO_DEVICE:
        hidden = _hidden(probe)
        if hidden is not None:
            return hidden
    known = answer(number)
    shown = f" CUDA_VISIBLE_DEVICES is {probe.visible_devices!r}." if probe.visible_devices is not None else ""
    where = f" It was loaded from {probe.cuda_path}." if probe.cuda_path else ""
    return Finding(
        known.code, Severity.ERROR, f"cuInit returned {probe.cuda_init}: {known.meaning}.{where}{shown}", known.fix
    )


def _hidden(probe: Probe) -> Finding | None:
    """Why the driver shows no GPU, where the variable or MIG says it."""
    value = probe.visible_devices
    if value is not None and value.strip() in ("", "-1", "NoDevFiles", "none", "void"):
        return Finding(
            "visible-devices-empty",
            Severity.ERROR,
            f"CUDA_VISIBLE_DEVICES is {value!r}: it hides every GPU.",
            "Unset it, or request a GPU from the scheduler (`--gpus 1`): without one, it is set so.",
        )
    wrong = unknown_entry(value, probe.managed) if value is not None else None
    if wrong is not None:
        return Finding(
            "visible-devices-wrong",
            Severity.ERROR,
            f"CUDA_VISIBLE_DEVICES is {value!r}, and {wrong!r} is no GPU here: it hides every GPU.",
            f"Unset it, or use one of: {available(probe.managed)}.",
        )
    if probe.managed and all(gpu.mig and not gpu.mig_uuids for gpu in probe.managed):
        return Finding(
            "mig-without-devices",
            Severity.ERROR,
            "The GPU is in MIG mode, and no MIG device has been made on it: no program can use it.",
            "Ask the administrator to make MIG devices (`nvidia-smi mig -cgi … -C`) or to switch MIG mode off.",
        )
    return None


def _not_loaded(probe: Probe) -> Finding:
    reason = probe.cuda_error or ""
    if "GLIBC_" in reason:
        return Finding(
            "glibc-too-old",
            Severity.ERROR,
            f"The image's C library is too old for the host's driver: {reason}.",
            "Start from a newer base; `ctk bases` lists them.",
        )
    return Finding(
        "libcuda-not-loaded",
        Severity.ERROR,
        f"--nv bound libcuda, but it cannot be loaded: {reason}. LD_LIBRARY_PATH is {probe.library_path!r}.",
        "See that the image's %environment adds to LD_LIBRARY_PATH and does not overwrite it: /.singularity.d/libs "
        "must stay in it.",
    )


def _hip_reason(probe: Probe) -> Finding:
    if probe.hip_init is None:
        return Finding(
            "hip-not-loaded",
            Severity.ERROR,
            f"The image's libamdhip64 cannot be loaded: {probe.hip_error}.",
            "The runtime binds devices only: install ROCm's HIP in the image, or a framework's build for ROCm.",
        )
    where = f" It was loaded from {probe.hip_path}." if probe.hip_path else ""
    if probe.hip_init in (0, NO_DEVICE):
        name = probe.visible_by or "ROCR_VISIBLE_DEVICES"
        shown = f" {name} is {probe.visible_devices!r}." if probe.visible_devices is not None else ""
        known = answer(NO_DEVICE)
        return Finding(
            known.code,
            Severity.ERROR,
            f"HIP works but shows no GPU to this process.{where}{shown}",
            known.fix.replace("CUDA_VISIBLE_DEVICES", name),
        )
    return Finding(
        "hip-init-failed",
        Severity.ERROR,
        f"HIP failed to start: it returned {probe.hip_init}.{where}",
        "Check that the image's ROCm fits the host's driver (`cat /sys/module/amdgpu/version`).",
    )


def _shown(probe: Probe) -> Finding:
    version = f", CUDA up to {cuda_version_text(probe.cuda_version)}" if probe.cuda_version else ""
    driver = f"driver {probe.driver}" if probe.driver else "HIP" if probe.hip_path else "the driver"
    return Finding(
        "gpu-visible", Severity.OK, f"From inside, {driver} shows {count(len(probe.devices), 'GPU')}{version}."
    )


def _partly_visible(probe: Probe) -> tuple[Finding, ...]:
    value = probe.visible_devices
    wrong = unknown_entry(value, probe.managed) if value else None
    if wrong is None:
        return ()
    return (
        Finding(
            "visible-devices-wrong",
            Severity.WARNING,
            f"CUDA_VISIBLE_DEVICES is {value!r}, and {wrong!r} is no GPU here: it hides that entry and all behind it.",
            f"Use: {available(probe.managed)}.",
        ),
    )


def _nvml(probe: Probe) -> tuple[Finding, ...]:
    if not probe.nvml_init:
        return ()
    return (
        Finding(
            "nvml-failed",
            Severity.WARNING,
            f"NVML returned {probe.nvml_init}: nvidia-smi does not work in this container, CUDA does.",
            "18 means that the driver was updated without a reboot: tell the administrator.",
        ),
    )


def cuda_version_text(number: int) -> str:
    """12040 -> '12.4' (cuDriverGetVersion: 1000 * major + 10 * minor)."""
    return f"{number // 1000}.{number % 1000 // 10}"
