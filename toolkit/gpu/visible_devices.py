"""CUDA_VISIBLE_DEVICES against the GPUs that there are.

CUDA takes the entries up to the first that is no device, and ignores that one and all behind it. An entry is an index,
a UUID (`GPU-…`, or so much of it that it is unique) or a MIG device (`MIG-…`).
Source: NVIDIA, CUDA C++ Programming Guide, environment variables; MIG User Guide, CUDA visible devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.gpu.probe import Managed


def unknown_entry(value: str, managed: Sequence[Managed]) -> str | None:
    """The first entry that names none of the GPUs; None if each names one, or nothing is known of the GPUs."""
    if not managed:
        return None
    return next((entry for entry in _entries(value) if not _names(entry, managed)), None)


def available(managed: Sequence[Managed]) -> str:
    """The values that would name a GPU, for a message."""
    values = [f"{gpu.index} ({gpu.uuid})" if gpu.uuid else str(gpu.index) for gpu in managed if not gpu.mig_uuids]
    return ", ".join([*values, *(uuid for gpu in managed for uuid in gpu.mig_uuids)])


def _entries(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",")]


def _names(entry: str, managed: Sequence[Managed]) -> bool:
    if entry.isdecimal():
        return len(entry) < 10 and int(entry) < len(managed)  # Python reads no integer of very many digits
    known = [uuid for gpu in managed for uuid in (gpu.uuid, *gpu.mig_uuids) if uuid]
    if entry.startswith("MIG-GPU-"):  # drivers before 470 name MIG devices by their GPU: MIG-GPU-<uuid>/1/0
        return any(entry.startswith(f"MIG-{uuid}/") for uuid in known)
    return entry.startswith(("GPU-", "MIG-")) and any(uuid.startswith(entry) for uuid in known)
