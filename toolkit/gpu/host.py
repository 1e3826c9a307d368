"""NVIDIA driver and devices of this host: read from files, in a millisecond, without nvidia-smi."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HostGpu:
    """The driver's version (None without a driver) and the device files of GPUs (`/dev/nvidia0`, …)."""

    driver: str | None
    devices: tuple[str, ...]

    @property
    def present(self) -> bool:
        """Whether a job here could use a GPU: devices and their driver."""
        return bool(self.devices) and self.driver is not None


def host_gpu(root: Path = Path("/")) -> HostGpu:
    """Look at this host. The order of the two driver files is that of uv's accelerator detection."""
    devices = sorted(str(path) for path in (root / "dev").glob("nvidia[0-9]*"))
    return HostGpu(driver_version(root), tuple(devices))


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
