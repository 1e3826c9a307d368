"""The document of `ctk check-gpu --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.gpu.chain import Link
    from toolkit.gpu.check import Checked
    from toolkit.gpu.framework_check import FrameworkCheck, Product
    from toolkit.gpu.host import HostGpu
    from toolkit.gpu.inside import Ending
    from toolkit.gpu.probe import Device, Managed, Probe


def checked(image: Path, found: Checked) -> dict[str, Any]:
    """The verdict, the links, and the facts that they were judged by."""
    return {
        "verdict": found.chain.verdict,
        "image": str(image),
        "links": [_link(link) for link in found.chain.links],
        "host": _host(found.seen.host),
        "inside": _inside(found.seen.probe),
        "checks": [_check(check) for check in found.checks],
    }


def _link(link: Link) -> dict[str, Any]:
    codes = list(dict.fromkeys(finding.code for finding in link.findings))
    return {"name": link.name, "framework": link.subject, "state": link.state, "findings": codes}


def _host(host: HostGpu) -> dict[str, Any]:
    return {"vendor": host.vendor, "driver": host.driver, "devices": list(host.devices)}


def _inside(probe: Probe) -> dict[str, Any]:
    return {
        "python": probe.python,
        "device_files": list(probe.device_files),
        "bound_libraries": list(probe.bound_libraries),
        "library_path": probe.library_path,
        "visible_devices": probe.visible_devices,
        "nvidia_smi": probe.nvidia_smi,
        "devices": list(map(_device, probe.devices)),
        "managed": list(map(_managed, probe.managed)),
        "cuda_error": probe.cuda_error,
        "cuda_path": probe.cuda_path,
        "cuda_init": probe.cuda_init,
        "cuda_version": probe.cuda_version,
        "nvml_init": probe.nvml_init,
        "driver": probe.driver,
        "hip_error": probe.hip_error,
        "hip_path": probe.hip_path,
        "hip_init": probe.hip_init,
        "hip_version": probe.hip_version,
        "writable": probe.writable,
        "ending": _ending(probe.ending),
    }


def _device(gpu: Device) -> dict[str, Any]:
    return {
        "name": gpu.name,
        "capability": list(gpu.capability) if gpu.capability else None,
        "memory_bytes": gpu.memory or None,
        "uuid": gpu.uuid,
        "context": gpu.context,
    }


def _managed(gpu: Managed) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": gpu.name,
        "uuid": gpu.uuid,
        "memory_bytes": gpu.memory_total,
        "free_bytes": gpu.memory_free,
        "used_bytes": gpu.memory_used,
        "compute_mode": gpu.compute_mode,
        "mig": gpu.mig,
        "mig_uuids": list(gpu.mig_uuids),
        "uncorrected": gpu.uncorrected,
        "processes": gpu.processes,
    }


def _check(check: FrameworkCheck) -> dict[str, Any]:
    return {
        "name": check.name,
        "answered": check.answered,
        "version": check.version,
        "count": check.count,
        "reason": check.reason,
        "failed": check.failed,
        "error": check.error,
        "cpu_seconds": check.cpu_seconds,
        "products": list(map(_product, check.products)),
        "ending": _ending(check.ending),
    }


def _product(product: Product) -> dict[str, Any]:
    return {
        "index": product.index,
        "seconds": product.seconds,
        "difference": product.difference,
        "on_device": product.on_device,
        "device": product.device,
        "grown_bytes": product.grown,
        "error": product.error,
    }


def _ending(ending: Ending) -> dict[str, Any]:
    return {
        "status": ending.status,
        "seconds": ending.seconds,
        "step": ending.step,
        "left": list(ending.left),
        "lines": list(ending.lines),
        "signal": ending.signal,
    }
