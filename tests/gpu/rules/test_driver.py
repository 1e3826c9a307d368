"""Which driver a build needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpu.judged import COMPAT, CU124, GPU, TORCH, audit, codes, framework, on
from toolkit.gpu.facts import TargetMachine
from toolkit.support.findings import Verdict


@pytest.mark.parametrize(
    ("cuda", "driver", "code"),
    [
        ("12.4", None, "minimum-driver"), ("12.4", "525.60.13", "driver-before-toolkit"),
        ("12.4", "525.60.12", "driver-too-old"), ("12.4", "550.54.14", None),
        ("13.0", "575.57.08", "driver-too-old"), ("13.0", "580.65.06", None),
        ("11.6", "470.57.02", "driver-before-toolkit"),
        ("11.6", "450.51.05", "driver-too-old"), ("11.0", "450.51.05", None), ("10.1", "418.39", None),
        ("10.1", "410.48", "driver-too-old"), ("12", "535.104.05", None), ("99.0", "535.104.05", None),
    ],
)  # fmt: skip
def test_drivers(cuda: str, driver: str | None, code: str | None) -> None:
    found = audit(framework("torch", "2.5.1", replace(GPU, cuda=cuda)), target=TargetMachine(driver=driver))
    assert codes(found) & {"minimum-driver", "driver-too-old", "driver-before-toolkit"} == ({code} if code else set())


@pytest.mark.parametrize(
    ("gpu", "driver", "verdict", "severity"),
    [
        ("A100", "470.57.02", Verdict.GPU_READY, "info"),  # forward compatibility serves it
        ("A100", "550.54.15", Verdict.GPU_READY, "info"),
        ("A100", "570.86.10", Verdict.GPU_BROKEN, "error"),  # 803
        ("RTX4090", "525.147.05", Verdict.GPU_BROKEN, "error"),  # 804
        ("8.7", "470.57.02", Verdict.GPU_BROKEN, "info"),  # a Jetson, which this build has no code for
        ("8.0", "470.57.02", Verdict.GPU_READY, "warning"),  # not known whether it is one of a data centre
        (None, "570.86.10", Verdict.GPU_BROKEN, "error"),
        (None, "470.57.02", Verdict.GPU_READY, "warning"),
        ("A100", None, Verdict.GPU_READY, "warning"), (None, None, Verdict.GPU_READY, "warning"),
        ("RTX4090", None, Verdict.GPU_BROKEN, "error"),
    ],
)  # fmt: skip
def test_forward_compatibility_both_ways(gpu: str | None, driver: str | None, verdict: Verdict, severity: str) -> None:
    found = audit(
        framework("torch", "2.5.1", CU124), target=on(gpu, driver),
        drivers=((COMPAT, "LD_LIBRARY_PATH"),), driver_versions={COMPAT: "550.54.15"},
    )  # fmt: skip
    assert [one.severity.value for one in found.findings if one.code == "compat-libcuda-first"] == [severity]
    assert found.verdict is verdict
    assert "driver-too-old" not in codes(found)


def test_forward_compatibility_of_an_older_cuda_bridges_nothing() -> None:
    found = audit(
        framework("torch", "2.11.0", replace(TORCH, cuda="13.0")), target=on("A100", "470.57.02"),
        drivers=((COMPAT, "LD_LIBRARY_PATH"),), driver_versions={COMPAT: "550.54.15"},
    )  # fmt: skip
    assert "driver-too-old" in codes(found, "error")


def test_an_old_driver_without_compat_stays_too_old() -> None:
    found = audit(
        framework("torch", "2.5.1", CU124), target=on("A100", "470.57.02"), drivers=((COMPAT, "ld.so.cache"),)
    )
    assert {"driver-too-old"} == codes(found, "error")


def test_cuda_newer_than_all_known_ones_is_named() -> None:
    build = replace(TORCH, cuda="14.0")
    found = audit(framework("torch", "3.0.0", build), target=on("H100", "580.65.06"))
    assert codes(found, "warning") >= {"gpu-support-unknown"}
    older = audit(framework("torch", "1.0.0", replace(build, cuda="7.5")), target=on(None, "580.65.06"))
    assert "gpu-support-unknown" not in codes(older)
