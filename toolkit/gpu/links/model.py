"""What a link is judged by, and the judgement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.gpu.host import HostGpu
    from toolkit.gpu.probe import Probe
    from toolkit.gpu.verdicts import GpuVerdict
    from toolkit.support.findings import Finding


@dataclass(frozen=True, slots=True)
class Seen:
    """What the host and the probe have shown."""

    host: HostGpu
    probe: Probe


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of a link. `verdict` is that of the chain if the link breaks it, None if it holds."""

    findings: tuple[Finding, ...]
    verdict: GpuVerdict | None = None
