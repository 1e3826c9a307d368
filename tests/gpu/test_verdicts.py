"""The exit status of each verdict is part of the interface: scripts and CI jobs test it."""

from __future__ import annotations

from toolkit.gpu.verdicts import GpuVerdict


def test_exit_statuses_of_all_verdicts() -> None:
    assert {verdict.value: verdict.exit_status for verdict in GpuVerdict} == {
        "gpu-used": 0,
        "gpu-visible": 0,
        "cpu-fallback": 1,
        "gpu-start-failed": 1,
        "gpu-not-visible": 1,
        "broken": 1,
        "not-known": 1,
        "no-gpu-on-host": 3,
    }
