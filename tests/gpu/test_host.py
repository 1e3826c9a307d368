"""What the host's driver says: its version and its devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.gpu.host import Vendor, any_gpu, driver_version, host_gpu

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("sys/module/nvidia/version", "550.54.15\n", "550.54.15"),
        (
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n",
            "535.104.05",
        ),
        (
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n",
            "570.86.15",
        ),
        ("proc/driver/nvidia/version", "something new\n", None),
        ("etc/nothing", "", None),
    ],
)
def test_the_drivers_version_is_read_from_either_file(
    tmp_path: Path, file: str, text: str, version: str | None
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    assert driver_version(tmp_path) == version


def test_devices_are_the_numbered_ones(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / "dev" / name).touch()
    found = host_gpu(tmp_path)
    assert found.devices == (str(tmp_path / "dev/nvidia0"), str(tmp_path / "dev/nvidia1"))
    assert not found.present, "devices without a driver are no GPU"
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("550.54.15\n")
    assert host_gpu(tmp_path).present


def test_amd_is_looked_for_where_there_is_no_nvidia(tmp_path: Path) -> None:
    assert any_gpu(tmp_path).vendor is Vendor.NVIDIA
    (tmp_path / "dev/dri").mkdir(parents=True)
    for name in ("kfd", "dri/renderD128", "dri/card0"):
        (tmp_path / "dev" / name).touch()
    assert (any_gpu(tmp_path).vendor, any_gpu(tmp_path).driver) == (Vendor.AMD, None)
    (tmp_path / "sys/module/amdgpu").mkdir(parents=True)
    assert any_gpu(tmp_path).driver == "amdgpu of the kernel"
    assert len(any_gpu(tmp_path).devices) == 2
    (tmp_path / "dev/nvidia0").touch()
    assert any_gpu(tmp_path).vendor is Vendor.NVIDIA


def test_specifications_of_another_driver_are_stale(tmp_path: Path) -> None:
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("550.54.15\n")
    for directory, version in (("etc/cdi", "535.104.05"), ("var/run/cdi", "550.54.15")):
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / "nvidia.yaml").write_text(f"hostPath: /usr/lib/libcuda.so.{version}\n")
    assert host_gpu(tmp_path).stale_specs == (("/etc/cdi/nvidia.yaml", "535.104.05"),)
