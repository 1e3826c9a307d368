"""What the host's driver says: its version and its devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.gpu.host import driver_version, host_gpu

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
