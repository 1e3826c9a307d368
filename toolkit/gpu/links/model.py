"""What a link is judged by, and the judgement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from toolkit.gpu.host import HostGpu
    from toolkit.gpu.probe import Probe
    from toolkit.gpu.verdicts import GpuVerdict


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


def error(code: str, message: str, fix: str) -> Finding:
    """What breaks a link."""
    return Finding(code, Severity.ERROR, message, fix)


def warning(code: str, message: str, fix: str) -> Finding:
    """What does not break it yet."""
    return Finding(code, Severity.WARNING, message, fix)
