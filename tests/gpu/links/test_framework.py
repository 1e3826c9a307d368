"""The fourth link: the framework's import and its list of GPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.links.seen import codes
from toolkit.gpu.framework_check import FrameworkCheck, from_json
from toolkit.gpu.inside import Ending
from toolkit.gpu.links.framework import judge_framework
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Finding, Severity

MISSING = Finding("missing-cuda-library", Severity.ERROR, "libcudnn is missing.", "Install it.")
RECORDED = json.loads((Path(__file__).parents[2] / "data/probes/frameworks.json").read_text(encoding="utf-8"))
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


# What real frameworks answered over the stand-in driver, which has no function that computes.
SAID = {
    "torch==2.5.1": ("torch.cuda.is_available() is False (built for 12.4).", GpuVerdict.CPU_FALLBACK),
    "torch==2.5.1 FAKE_CUDA_VERSION=11040": ("driver on your system is too old (found", GpuVerdict.CPU_FALLBACK),
    "torch==2.5.1 FAKE_CUDA_INIT=999": ("It printed: SITE/torch/cuda/__init__.py:129", GpuVerdict.CPU_FALLBACK),
    "torch==2.13.0+cpu": ("is False, and the build has no CUDA.", GpuVerdict.CPU_FALLBACK),
    "jax==0.10.2": ("jax.devices() is [CpuDevice(id=0)]", GpuVerdict.CPU_FALLBACK),
    "onnxruntime==1.31.1": ("this build has no GPU provider", GpuVerdict.CPU_FALLBACK),
    "cupy-cuda12x==14.2.0": ("cudaErrorCallRequiresNewerDriver", GpuVerdict.BROKEN),
    "cupy-cuda12x==14.2.0 FAKE_CUDA_VERSION=11040": ("cudaErrorInsufficientDriver", GpuVerdict.BROKEN),
    "tensorflow-cpu==2.21.0": ("TensorFlow lists no GPU device", GpuVerdict.CPU_FALLBACK),
    "paddlepaddle==3.3.1": ("paddle.device.cuda.device_count() is 0", GpuVerdict.CPU_FALLBACK),
}


def _title(answer: dict[str, Any]) -> str:
    settings = (f"{name}={value}" for name, value in answer["settings"].items())
    return " ".join([answer["installed"], *settings])


@pytest.mark.parametrize("answer", RECORDED["answers"], ids=_title)
def test_answer_of_a_real_framework_is_judged(answer: dict[str, Any]) -> None:
    check = from_json(answer["check"], answer["facts"], Ending(lines=tuple(answer["lines"])))
    judged = judge_framework("It", check, [])
    words, verdict = SAID[_title(answer)]
    assert (judged.verdict, codes(judged)) == (verdict, ["framework-sees-no-gpu"])
    assert words in judged.findings[0].message


def test_fewer_gpus_than_the_driver_shows_are_a_warning() -> None:
    one = FrameworkCheck("tensorflow", True, "2.15", count=1)
    assert codes(judge_framework("TensorFlow", one, (), visible=1)) == ["framework-sees-gpu"]
    judged = judge_framework("TensorFlow", one, (), visible=4)
    assert (judged.verdict, codes(judged)) == (None, ["framework-sees-gpu", "framework-sees-fewer-gpus"])
    assert "sees 1 of the 4 GPUs" in judged.findings[1].message
