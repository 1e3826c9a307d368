"""Which GPUs run which code: binary code (sm_80), and PTX (compute_80), which the driver compiles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.gpu.compatibility import compatibility
from toolkit.inventory.knowledge.frameworks import satisfies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.compatibility import Capability

_ARCHITECTURE = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def has_code(architectures: Iterable[str], capability: Capability, cuda: str | None = None) -> bool:
    """Whether a GPU runs any of the code: binary code, or PTX that its driver compiles."""
    known = list(architectures)
    return has_binary(known, capability, cuda) or any(
        name.startswith("compute_") and not suffix and capability >= own for name, own, suffix in map(_parsed, known)
    )


def has_binary(architectures: Iterable[str], capability: Capability, cuda: str | None = None) -> bool:
    """Whether there is binary code for a GPU: it serves its own major from its minor on, `a` code only its own.

    Source: NVIDIA, CUDA C++ Programming Guide, Binary Compatibility. `f` code serves its family, which is its major
    here. `cuda` is the release that the code was built with.
    """
    for name, own, suffix in map(_parsed, architectures):
        if name.startswith("sm_") and (capability == own if suffix == "a" else _serves(own, capability, cuda)):
            return True
    return False


def _parsed(architecture: str) -> tuple[str, Capability, str]:
    match = _ARCHITECTURE.fullmatch(architecture)
    return (match[0], (int(match[2]), int(match[3])), match[4]) if match else ("", (0, 0), "")


def _serves(own: Capability, capability: Capability, cuda: str | None) -> bool:
    """Binary code for `own` on a GPU of `capability`; between Jetson and other GPUs there is no compatibility."""
    integrated = compatibility().integrated
    if own in integrated.capabilities:
        return capability == own or {own, capability} == integrated.renamed
    if capability in integrated.capabilities and not (cuda and satisfies(cuda, integrated.unified)):
        return False
    return capability[0] == own[0] and capability[1] >= own[1]
