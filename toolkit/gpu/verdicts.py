"""The verdicts of `ctk check-gpu`, of a live check and of a log alike, and their exit statuses."""

from __future__ import annotations

from toolkit.support.enums import StrEnum


class GpuVerdict(StrEnum):
    """NOT_KNOWN: the question could not be decided. NO_GPU: this host has none, so nothing could be checked.

    START_FAILED: of a log, the program ended with an error before it computed on the GPU.
    """

    USED = "gpu-used"
    VISIBLE = "gpu-visible"
    CPU_FALLBACK = "cpu-fallback"
    START_FAILED = "gpu-start-failed"
    NOT_VISIBLE = "gpu-not-visible"
    BROKEN = "broken"
    NOT_KNOWN = "not-known"
    NO_GPU = "no-gpu-on-host"

    @property
    def exit_status(self) -> int:
        """0: the GPU is used or visible. 3: this host has no GPU. 1: everything else."""
        if self in (GpuVerdict.USED, GpuVerdict.VISIBLE):
            return 0
        return 3 if self is GpuVerdict.NO_GPU else 1
