"""The first link: whether this host has a GPU and its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gpu.answers import FROM_THE_KERNEL
from toolkit.gpu.host import Vendor
from toolkit.gpu.links.model import Judged
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from toolkit.gpu.host import HostGpu
    from toolkit.gpu.links.model import Seen
    from toolkit.gpu.probe import Probe


def judge_host(seen: Seen) -> Judged:
    """What was seen from inside counts for more than what the host seems to have."""
    host = seen.host
    findings = (_driver(host), *_stale_specs(host))
    return Judged(findings, None if host.present or _kernel_answered(seen.probe) else GpuVerdict.NO_GPU)


def _kernel_answered(probe: Probe) -> bool:
    """Whether a driver in the kernel answered. A libcuda on a node without one says 100 or 999."""
    contexts = [device.context for device in probe.devices]
    return bool(contexts) or probe.cuda_init in FROM_THE_KERNEL or probe.cuda_init == 0 or bool(probe.managed)


def _driver(host: HostGpu) -> Finding:
    if host.present:
        cards = [device for device in host.devices if device != "/dev/kfd"]
        return Finding("host-gpu", Severity.OK, f"This host has {count(len(cards), 'GPU')}, driver {host.driver}.")
    if host.driver:
        name = "AMD driver" if host.vendor is Vendor.AMD else "NVIDIA driver"
        files = "/dev/dri/renderD*" if host.vendor is Vendor.AMD else "/dev/nvidia*"
        return Finding(
            "no-device-files",
            Severity.WARNING,
            f"This host has the {name} {host.driver}, but no {files} device.",
            "Inside a job, request a GPU from the scheduler (`--gpus 1`).",
        )
    there = ", though device files are there." if host.devices else "."
    return Finding(
        "no-gpu-on-host",
        Severity.WARNING,
        f"This host has no NVIDIA GPU: no driver is loaded{there}",
        "Login nodes seldom have one: run this in a job on a GPU node.",
    )


def _stale_specs(host: HostGpu) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            "cdi-spec-stale",
            Severity.WARNING,
            f"{path} is for driver {version}, and the host's driver is {host.driver}: runtimes that use the Container "
            "Device Interface bind libraries that are gone, or do not fit. Apptainer's --nv does not read it.",
            "Ask the administrator to write it again: nvidia-ctk cdi generate --output=" + path,
        )
        for path, version in host.stale_specs
    )
