"""The fourth link: the framework's import and its list of GPUs."""

from __future__ import annotations

import pytest

from tests.gpu.links.seen import codes
from toolkit.gpu.framework_check import FrameworkCheck
from toolkit.gpu.inside import Ending
from toolkit.gpu.links.framework import judge_framework
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity

MISSING = Finding("missing-cuda-library", Severity.ERROR, "libcudnn is missing.", "Install it.")
NOTE = Finding("minimum-driver", Severity.INFO, "It needs driver 525.")


@pytest.mark.parametrize(
    ("check", "code", "verdict"),
    [
        (FrameworkCheck("torch", False, ending=Ending(139, step="import")), "framework-crashes", GpuVerdict.BROKEN),
        (FrameworkCheck("torch", False, ending=Ending(1)), "framework-crashes", GpuVerdict.BROKEN),
        (FrameworkCheck("torch", False, ending=Ending(143, 9, "import")), "framework-hangs", GpuVerdict.BROKEN),
        (
            FrameworkCheck("torch", True, failed="import", error="ImportError: libx"),
            "framework-import-fails",
            GpuVerdict.BROKEN,
        ),
        (
            FrameworkCheck("torch", True, failed="import", error="ModuleNotFoundError: No module named 'torch'"),
            "framework-not-installed",
            GpuVerdict.BROKEN,
        ),
        (FrameworkCheck("torch", True, "2.5", reason="no CUDA"), "framework-sees-no-gpu", GpuVerdict.CPU_FALLBACK),
        (FrameworkCheck("cupy", True, "14", failed="devices", error="x"), "framework-sees-no-gpu", GpuVerdict.BROKEN),
    ],
)
def test_framework_that_does_not_work_is_followed_by_what_the_audit_found(
    check: FrameworkCheck, code: str, verdict: GpuVerdict
) -> None:
    judged = judge_framework("PyTorch", check, [MISSING, NOTE])
    assert (judged.verdict, codes(judged)) == (verdict, [code, "missing-cuda-library"])
    assert judged.findings[0].fix
    assert judged.findings[1].severity is Severity.ERROR


def test_framework_that_works_makes_the_audits_error_a_warning() -> None:
    judged = judge_framework("PyTorch", FrameworkCheck("torch", True, "2.5", count=2), [MISSING, NOTE])
    assert (judged.verdict, codes(judged)) == (None, ["framework-sees-gpu", "missing-cuda-library"])
    assert judged.findings[1].severity is Severity.WARNING


def test_framework_that_does_not_fit_is_left_to_the_next_link() -> None:
    judged = judge_framework("PyTorch", FrameworkCheck("torch", True, "2.5"), [], unfit=True)
    assert (judged.verdict, codes(judged)) == (None, ["framework-imported"])


def test_processes_that_are_left_are_named() -> None:
    check = FrameworkCheck("torch", True, "2.5", count=1, ending=Ending(left=("worker", "worker")))
    judged = judge_framework("PyTorch", check, [])
    assert "left 2 processes (worker)" in judged.findings[-1].message
