"""The machine's own GPUs, for a lab that asks for them."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from toolkit.support.errors import MissingOnHost


def real_gpus(devices: Path = Path("/dev")) -> tuple[str, ...]:
    """The device files of the NVIDIA GPUs (`/dev/nvidia0`, ...), by number. Raises MissingOnHost without any."""
    numbered = [(int(match[1]), path) for path in devices.glob("nvidia*") if (match := _match(path)) and _usable(path)]
    if not numbered:
        raise MissingOnHost(
            f"this machine has no GPU: {devices}/nvidia0 does not exist",
            fix="Omit --real-gpus: Slurm schedules stand-ins like real GPUs. To check this machine: ctk doctor",
            code="no-gpu",
        )
    return tuple(str(path) for _, path in sorted(numbered))


def _match(path: Path) -> re.Match[str] | None:
    return re.fullmatch(r"nvidia(\d+)", path.name)  # not nvidiactl, nvidia-uvm, nvidia-caps


def _usable(path: Path) -> bool:
    return stat.S_ISCHR(path.stat().st_mode)
