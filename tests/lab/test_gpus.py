"""GPUs of the host, for the nodes of a lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.lab.gpus import real_gpus
from toolkit.support.errors import MissingOnHost

if TYPE_CHECKING:
    from pathlib import Path


def test_gpus_are_devices_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    with pytest.raises(MissingOnHost, match="this machine has no GPU"):
        real_gpus(tmp_path)
    for name in ("nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).symlink_to("/dev/null")
    (tmp_path / "nvidia1").touch()
    assert real_gpus(tmp_path) == tuple(f"{tmp_path}/nvidia{number}" for number in (0, 2, 10))
