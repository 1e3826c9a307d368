"""Which code runs on which generation of GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpu.judged import GPU, SITE, TENSORFLOW, TORCH, audit, codes, framework, on
from toolkit.gpu.compatibility import parse_gpu
from toolkit.gpu.facts import GpuLibrary, Loaded, TargetMachine
from toolkit.gpu.machine_code import has_code
from toolkit.inventory.knowledge.builds import Want
from toolkit.support.findings import Verdict


def test_a_gpu_without_code_breaks_the_verdict() -> None:
    volta = TargetMachine(gpu="V100", capability=(7, 0))
    assert audit(framework("torch", "2.5.1", TORCH), target=volta).verdict is Verdict.GPU_READY
    blackwell = audit(framework("torch", "2.5.1", TORCH), target=TargetMachine(gpu="B200", capability=(10, 0)))
    assert codes(blackwell, "error") == {"gpu-not-covered"}
    thirteen = audit(framework("torch", "2.11.0", replace(GPU, cuda="13.0")), target=volta)
    assert "CUDA 13 dropped" in thirteen.findings[0].message


def test_a_new_cudnn_ends_volta_though_the_build_has_code_for_it() -> None:
    path = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
    one = framework("torch", "2.5.1", TORCH, lacking=(Loaded(Want("libcudnn.so.9", "x"), path),))
    target = TargetMachine(gpu="V100", capability=(7, 0))
    for version, verdict in (("9.10.2.21", Verdict.GPU_READY), ("9.28.0.42", Verdict.GPU_BROKEN)):
        assert audit(one, target=target, libraries=(GpuLibrary("cudnn", version, path, True),)).verdict is verdict


@pytest.mark.parametrize(
    ("gpu", "driver", "verdict", "code"),
    [
        ("H100", "525.147.05", Verdict.GPU_BROKEN, "ptx-needs-newer-driver"),
        ("H100", "535.54.03", Verdict.GPU_READY, None), ("H100", "550.54.15", Verdict.GPU_READY, None),
        ("A100", "525.147.05", Verdict.GPU_READY, "driver-before-toolkit"),
        ("L4", "525.147.05", Verdict.GPU_READY, "driver-before-toolkit"),
        (None, "525.147.05", Verdict.GPU_READY, "ptx-needs-newer-driver"),
        ("H100", "515.65.01", Verdict.GPU_BROKEN, "driver-too-old"),
    ],
)  # fmt: skip
def test_ptx_needs_the_driver_of_its_toolkit(gpu: str | None, driver: str, verdict: Verdict, code: str | None) -> None:
    found = audit(framework("tensorflow", "2.15.1", TENSORFLOW), target=on(gpu, driver))
    about = {"ptx-needs-newer-driver", "driver-before-toolkit", "driver-too-old"}
    assert (found.verdict, codes(found) & about) == (verdict, {code} if code else set())


def test_ptx_of_jax_is_compiled_by_jax() -> None:
    jax = replace(GPU, cuda="12.3", architectures=("compute_52",))
    assert "ptx-needs-newer-driver" not in codes(
        audit(framework("jax", "0.4.30", jax), target=on("H100", "525.147.05"))
    )


@pytest.mark.parametrize(
    ("architectures", "gpu", "cuda", "expected"),
    [
        (("sm_80", "sm_86", "sm_90"), "8.7", "12.4", False), (("sm_80", "sm_87"), "8.7", "12.4", True),
        (("sm_80", "compute_80"), "8.7", "12.4", True), (("sm_70", "sm_80"), "7.2", "12.4", False),
        (("sm_72",), "7.2", "11.4", True), (("sm_72",), "7.5", "11.4", False), (("sm_87",), "8.9", "12.4", False),
        (("sm_80",), "8.7", "13.2", True), (("sm_80",), "8.7", "13.0", False), (("sm_53",), "5.3", "10.2", True),
        (("sm_50",), "5.3", "10.2", False), (("sm_101",), "11.0", "13.0", True), (("sm_80",), "8.6", "11.4", True),
    ],
)  # fmt: skip
def test_jetson_runs_no_binary_code_of_other_gpus(
    architectures: tuple[str, ...], gpu: str, cuda: str, expected: bool
) -> None:
    assert has_code(architectures, parse_gpu(gpu), cuda) is expected
    found = audit(
        framework("torch", "2.5.1", replace(GPU, cuda=cuda, architectures=architectures)), target=on(gpu, None)
    )
    assert ("gpu-not-covered" not in codes(found)) is expected
