"""The last link: whose arithmetic it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpu.links.seen import codes
from toolkit.gpu.framework_check import FrameworkCheck, Product
from toolkit.gpu.links.capability import judge_capability
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity

OLD = Finding("driver-too-old", Severity.ERROR, "The driver is too old.", "Use a newer one.")
OTHER = Finding("missing-cuda-library", Severity.ERROR, "Not of this link.")
GOOD = Product(0, seconds=0.001, difference=1e-6, on_device=True)
CHECK = FrameworkCheck("torch", True, "2.5", count=1, cpu_seconds=0.05, products=(GOOD,))


def judged(product: Product, audited: tuple[Finding, ...] = ()) -> tuple[GpuVerdict | None, list[str]]:
    found = judge_capability("PyTorch", replace(CHECK, products=(product,)), audited)
    return found.verdict, codes(found)


@pytest.mark.parametrize(
    ("changes", "code", "verdict"),
    [
        ({}, "framework-computes", None),
        ({"on_device": False}, "result-not-on-gpu", GpuVerdict.CPU_FALLBACK),
        ({"on_device": None, "grown": 300 << 20}, "framework-computes", None),
        ({"on_device": None, "grown": 0}, "result-not-on-gpu", GpuVerdict.CPU_FALLBACK),
        ({"on_device": None, "grown": None}, "not-proved", GpuVerdict.NOT_KNOWN),
        ({"on_device": False, "grown": 300 << 20}, "result-not-on-gpu", GpuVerdict.CPU_FALLBACK),
        ({"difference": 0.4}, "wrong-result", GpuVerdict.BROKEN),
        ({"difference": float("nan")}, "wrong-result", GpuVerdict.BROKEN),
        ({"difference": None}, "wrong-result", GpuVerdict.BROKEN),
        ({"error": "CUDA error: no kernel image is available"}, "framework-compute-fails", GpuVerdict.BROKEN),
    ],
)
def test_product_on_a_gpu(changes: dict[str, object], code: str, verdict: GpuVerdict | None) -> None:
    assert judged(replace(GOOD, **changes)) == (verdict, [code])  # type: ignore[arg-type]


def test_times_of_both_are_shown() -> None:
    found = judge_capability("PyTorch", CHECK, ())
    words = "PyTorch computed on GPU 0: the driver found the result in its memory (1 ms, on the CPU 50 ms)."
    assert found.findings[0].message == words


def test_worst_of_several_gpus_decides() -> None:
    failing = replace(GOOD, index=1, error="CUBLAS_STATUS_ALLOC_FAILED")
    found = judge_capability("PyTorch", replace(CHECK, count=2, products=(GOOD, failing)), ())
    assert (found.verdict, codes(found)) == (GpuVerdict.BROKEN, ["framework-computes", "framework-compute-fails"])
    assert "fills the GPU" in (found.findings[1].fix or "")


def test_expectation_of_the_audit() -> None:
    assert judged(GOOD, (OLD, OTHER)) == (None, ["framework-computes", "driver-too-old"])
    unchecked = judge_capability("PyTorch", None, (OLD, OTHER))
    assert (unchecked.verdict, codes(unchecked)) == (GpuVerdict.BROKEN, ["driver-too-old"])
    assert judge_capability("PyTorch", None, (OTHER,)).verdict is None
    blind = judge_capability("PyTorch", replace(CHECK, count=0, products=()), (OLD,))
    assert (blind.verdict, codes(blind)) == (GpuVerdict.CPU_FALLBACK, ["framework-sees-no-gpu", "driver-too-old"])


def test_exception_on_the_cpu_breaks_it() -> None:
    found = judge_capability("PyTorch", replace(CHECK, failed="product", error="MemoryError"), ())
    assert (found.verdict, codes(found)) == (GpuVerdict.BROKEN, ["framework-compute-fails"])
