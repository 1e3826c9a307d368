"""Each GPU that the driver shows: what it is, whether a program can use it, and what is odd about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gpu.answers import answer
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.probe import Device, Managed, Probe

_EXCLUSIVE = (1, 3)  # NVML_COMPUTEMODE_EXCLUSIVE_THREAD, _PROCESS
_PROHIBITED = 2
_DEVICE_UNAVAILABLE = 46
_FULL = 0.1  # of its memory is free: a training that worked elsewhere fails for lack of memory


def describe_devices(probe: Probe) -> Iterator[Finding]:
    """One line a GPU that can be used."""
    for number, device in enumerate(probe.devices):
        if device.context:
            continue
        memory = f", {device.memory / 2**30:.0f} GiB" if device.memory else ""
        capability = f", compute capability {'.'.join(map(str, device.capability))}" if device.capability else ""
        mig = ", a MIG device" if _is_mig(device, probe) else ""
        yield Finding("gpu", Severity.OK, f"GPU {number}: {device.name}{capability}{memory}{mig}.")


def failed_devices(probe: Probe) -> tuple[Finding, ...]:
    """The GPUs that no program can begin to use."""
    return tuple(
        _failed(number, device, _managed(device, probe))
        for number, device in enumerate(probe.devices)
        if device.context
    )


def _failed(number: int, device: Device, managed: Managed | None) -> Finding:
    which = f"GPU {number} ({device.name}{f', {managed.uuid}' if managed and managed.uuid else ''})"
    code = device.context or 0
    if code == _DEVICE_UNAVAILABLE and managed is not None and managed.compute_mode == _PROHIBITED:
        return Finding(
            "compute-prohibited",
            Severity.ERROR,
            f"{which}: its compute mode is Prohibited, so that no program may use it (error {code}).",
            "Ask the administrator: `nvidia-smi --compute-mode=DEFAULT`.",
        )
    if code == _DEVICE_UNAVAILABLE and managed is not None and managed.compute_mode not in (None, *_EXCLUSIVE):
        meaning = "another process uses it, or it has fallen off the bus"
        return Finding("device-unavailable", Severity.ERROR, f"{which}: {meaning} (error {code}).", answer(code).fix)
    known = answer(code)
    if known.code == "cuda-init-failed":
        return Finding(
            "gpu-failed",
            Severity.ERROR,
            f"{which} cannot be used: the driver returned {code} when a program began to.",
            "Request another node (Slurm: --exclude NODE), and tell the administrator which GPU it is.",
        )
    used = _memory(managed) if known.code == "gpu-memory-full" else ""
    return Finding(known.code, Severity.ERROR, f"{which}: {known.meaning}{used} (error {code}).", known.fix)


def doubts_of_devices(probe: Probe) -> Iterator[Finding]:
    """What a program will meet on a GPU that it can begin to use."""
    for number, device in enumerate(probe.devices):
        managed = _managed(device, probe)
        if device.context or managed is None:
            continue
        if managed.uncorrected:
            errors = count(managed.uncorrected, "uncorrected ECC error")
            yield Finding(
                "ecc-errors",
                Severity.WARNING,
                f"GPU {number} has had {errors} since the node started: results may be wrong, and programs may end.",
                "Request another node (Slurm: --exclude NODE), and tell the administrator.",
            )
        if managed.compute_mode in _EXCLUSIVE:
            yield Finding(
                "exclusive-mode",
                Severity.INFO,
                f"GPU {number} is in exclusive mode: a second process on it fails with error {_DEVICE_UNAVAILABLE}.",
            )
        if _is_full(managed) and not _is_mig(device, probe):
            by = f", used by {count(managed.processes, 'process', 'processes')}" if managed.processes else ""
            yield Finding(
                "gpu-memory-used",
                Severity.WARNING,
                f"GPU {number} is almost full{_memory(managed)}{by}.",
                "Another process fills it (nvidia-smi shows it): wait for it, or request another GPU.",
            )


def _is_full(managed: Managed) -> bool:
    free, total = managed.memory_free, managed.memory_total
    return free is not None and total is not None and free < _FULL * total


def _memory(managed: Managed | None) -> str:
    if managed is None or managed.memory_total is None or managed.memory_free is None:
        return ""
    free, total = managed.memory_free / 2**30, managed.memory_total / 2**30
    return f", {free:.1f} GiB of {total:.1f} GiB free"


def _managed(device: Device, probe: Probe) -> Managed | None:
    """The same GPU as NVML sees it, by its UUID."""
    if device.uuid is None:
        return None
    return next(
        (gpu for gpu in probe.managed if any(device.uuid in (uuid or "") for uuid in (gpu.uuid, *gpu.mig_uuids))), None
    )


def _is_mig(device: Device, probe: Probe) -> bool:
    return any(device.uuid and device.uuid in uuid for gpu in probe.managed for uuid in gpu.mig_uuids)
