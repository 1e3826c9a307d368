"""GPU driver and devices of this host: read from files, in a millisecond, without nvidia-smi."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from toolkit.support.enums import StrEnum

# Where the Container Device Interface keeps its specifications.
# Source: https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
_CDI = ("etc/cdi", "var/run/cdi")
_CDI_LIMIT = 1 << 20


class Vendor(StrEnum):
    """Whose GPUs a host has."""

    NVIDIA = "nvidia"
    AMD = "amd"


@dataclass(frozen=True, slots=True)
class HostGpu:
    """The driver's version (None without a driver) and the device files of GPUs (`/dev/nvidia0`, …).

    `stale_specs` are CDI specifications that bind the libraries of another driver: (file, its driver's version).
    """

    driver: str | None
    devices: tuple[str, ...]
    vendor: Vendor = Vendor.NVIDIA
    stale_specs: tuple[tuple[str, str], ...] = ()

    @property
    def present(self) -> bool:
        """Whether a job here could use a GPU: devices and their driver."""
        return bool(self.devices) and self.driver is not None


def any_gpu(root: Path = Path("/")) -> HostGpu:
    """NVIDIA's driver and GPUs; AMD's if there are only these."""
    nvidia = host_gpu(root)
    amd = amd_gpu(root)
    return amd if amd.devices and nvidia.driver is None and not nvidia.devices else nvidia


def host_gpu(root: Path = Path("/")) -> HostGpu:
    """NVIDIA's driver and GPUs. The order of the two driver files is that of uv's accelerator detection."""
    devices = sorted(str(path) for path in (root / "dev").glob("nvidia[0-9]*"))
    driver = driver_version(root)
    return HostGpu(driver, tuple(devices), stale_specs=_stale_specs(root, driver))


def amd_gpu(root: Path = Path("/")) -> HostGpu:
    """AMD's driver and GPUs. /dev/kfd is what HIP opens; a driver that came with the kernel has no version file."""
    if not (root / "dev/kfd").exists():
        return HostGpu(None, (), Vendor.AMD)
    devices = sorted(str(path) for path in (root / "dev/dri").glob("renderD*"))
    module = root / "sys/module/amdgpu"
    return HostGpu(_version_of(module), ("/dev/kfd", *devices), Vendor.AMD)


def _version_of(module: Path) -> str | None:
    try:
        return (module / "version").read_text().strip()
    except OSError:
        return "amdgpu of the kernel" if module.is_dir() else None


def driver_version(root: Path = Path("/")) -> str | None:
    """The kernel module's version, from /sys/module/nvidia/version or /proc/driver/nvidia/version."""
    try:
        return (root / "sys/module/nvidia/version").read_text().strip()
    except OSError:
        pass
    try:
        text = (root / "proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    # «NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug …»; open modules add words before it.
    match = re.search(r"\b(\d{3,4}\.\d+(?:\.\d+)?)\b", text)
    return match[1] if match else None


def _stale_specs(root: Path, driver: str | None) -> tuple[tuple[str, str], ...]:
    """The specifications whose libcuda is not that of `driver`: its file's name ends in the driver's version."""
    found = []
    for directory in _CDI:
        for path in sorted((root / directory).glob("*.*")):
            try:
                with path.open(encoding="utf-8", errors="replace") as file:
                    text = file.read(_CDI_LIMIT)
            except OSError:
                continue
            versions = sorted(set(re.findall(r"libcuda\.so\.(\d{3,4}\.[\d.]*\d)", text)))
            if driver is not None and versions and driver not in versions:
                found.append((f"/{path.relative_to(root)}", versions[0]))
    return tuple(found)
