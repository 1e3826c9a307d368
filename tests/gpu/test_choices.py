"""Which base of the shipped catalogue a machine gets: GPU, driver and framework, each with the fact that decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.cli.bases import choose_with_wheels
from toolkit.gpu.choosing import BaseRequest, parse_framework
from toolkit.gpu.compatibility import find_gpu
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.authoring.wheels import wheel_bases
from toolkit.recipes.bases import bases_in
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from toolkit.gpu.choosing import Choice

BASES = bases_in(shipped("defs"))
WHEELS = wheel_bases(BASES, knowledge())
JAX_12 = "python-3.12 with jax[cuda12], nvidia-cudnn-cu12<9.11"
JAX_13 = "python-3.12 with jax[cuda13]"

DRIVER = "NVIDIA, CUDA Toolkit Release Notes, table 3: CUDA 10.1 needs 418.39, 11 needs 450.80.02, 12 525.60.13, 13 580"
TORCH = "github.com/pytorch/pytorch, issues 172352 and 175253: architectures of the cu126, cu128 and cu130 builds"
VOLTA = "NVIDIA's support matrix of cuDNN 9.10.2, the last with Pascal and Volta; CUDA 13 dropped both"
TENSORFLOW = "build_info.py and cuda_config.h of the TensorFlow wheels on PyPI"
PTX = "NVIDIA, CUDA Compatibility: PTX needs its toolkit's driver (12.2: 535.54.03); TensorFlow 2.15 has no sm_90"
BROKEN = "github.com/tensorflow/build, issue 217: the image of 2.18 has cuDNN 8 for a build that needs 9"
FIRST = "NVIDIA, PTX ISA, Release Notes: sm_80 came with CUDA 11.0, sm_90 with 11.8, sm_100 and sm_120 with 12.8"
ARM = "NVIDIA's product pages: Grace Hopper and Grace Blackwell have Arm processors; pytorch/pytorch is for x86-64"
JETSON = "NVIDIA, CUDA C++ Programming Guide, Binary Compatibility: Jetson runs no code for other GPUs"
LAST = "NVIDIA, Unix graphics feature deprecation schedule: R580 is the last for Maxwell to Volta, R470 for Kepler"
BLACKWELL = "NVIDIA, CUDA Toolkit Release Notes, table 3: 12.8 came with 570.26, 12.9 with 575.51.03"
INVALID_PTX = "tensorflow issues 89272, 99592 and 101746: PTX fails on Blackwell; NGC 25.02 has code for it"
AMD = "AMD, ROCm compatibility matrix and GPU specifications: gfx90a and gfx942 since ROCm 6.0, gfx950 since 7.0"
ROCM_JAX = "AMD, JAX compatibility: rocm/jax:rocm6.4.2-jax0.4.35-py3.12"
JAX = "JAX's installation page: CUDA 12 needs driver 525 and 5.2, CUDA 13 driver 580 and 7.5"
CUPY = "CuPy's upgrade guide: version 14 needs compute capability 5.0; CUDA 13 needs 7.5 and driver 580"
X86 = "AMD's product page of MI300A: x86 cores in the package"
MINOR = "NVIDIA, CUDA C++ Programming Guide, Binary Compatibility: code of 8.0 runs on 8.6 and 8.9"
KEPLER = "NVIDIA's release notes of CUDA 11.0: compute capability 3.0 and 3.2 were dropped"
GFX906 = "AMD, release notes of ROCm 5.7.0: the last for MI50; what later builds have for it is not recorded"
UNKNOWN = "no source read here says which GPUs this build serves: it comes only if nothing else is left"


@pytest.mark.parametrize(
    ("framework", "gpus", "driver", "expected", "source"),
    [
        ("torch", "K80", "470.57.02", "?pytorch-2.0-cuda11.7", UNKNOWN),
        ("torch", "P100", "418.87.01", "?pytorch-1.4-cuda10.1", UNKNOWN),
        ("torch", "P100", "450.80.02", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "P100", "525.60.13", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "P100", "550.54.14", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "P100", "580.65.06", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "V100", "418.87.01", "?pytorch-1.4-cuda10.1", UNKNOWN),
        ("torch", "V100", "470.57.02", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "V100", "525.60.13", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "V100", "535.104.05", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "V100", "570.26", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "V100", "580.173.02", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "V100", "590.44.01", "driver", LAST),
        ("torch", "V100", "610.43.02", "driver", LAST),
        ("torch", "P100", "595.45.04", "driver", LAST),
        ("torch", "M40", "590.44.01", "driver", LAST),
        ("torch", "M40", "580.65.06", "pytorch-2.13-cuda12.6", LAST),
        ("torch", "M40", "535.104.05", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "GTX1080", "590.44.01", "driver", LAST),
        ("torch", "K80", "535.104.05", "driver", LAST),
        ("torch", "K80", "470.256.02", "?pytorch-2.0-cuda11.7", UNKNOWN),
        ("torch", "3.0", "590.44.01", "driver", LAST),
        ("torch", "8.7", "540.4.0", "?ngc-pytorch-25.06", JETSON),
        ("torch", "12.1", "580.65.06", "?ngc-pytorch-26.08", ARM),
        ("tensorflow", "K80", "525.60.13", "driver", LAST),
        ("tensorflow", "V100", "590.44.01", "driver", LAST),
        ("jax", "V100", "590.44.01", "driver", LAST),
        ("torch", "T4", "590.44.01", "pytorch-2.14-cuda13.0", LAST),
        ("torch", "RTX2080", "595.45.04", "pytorch-2.14-cuda13.0", LAST),
        ("torch", "V100 H100", "590.44.01", "driver", LAST),
        ("torch", "B200", "570.25", "driver", BLACKWELL),
        ("torch", "RTX5090", "560.28.03", "driver", BLACKWELL),
        ("torch", "RTXPRO6000", "570.26", "pytorch-2.11-cuda12.8", BLACKWELL),
        ("torch", "B300", "570.26", "driver", BLACKWELL),
        ("torch", "B300", "580.65.06", "pytorch-2.14-cuda13.0", BLACKWELL),
        ("torch", "GB10", "570.26", "driver", BLACKWELL),
        ("torch", "GB200", "580.65.06", "?ngc-pytorch-26.08", ARM),
        ("torch", "GB300", "580.65.06", "?ngc-pytorch-26.08", ARM),
        ("torch", "GB200", "550.54.14", "driver", BLACKWELL),
        ("torch", "RTX3090", "460.32.03", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "RTX4090", "520.61.05", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "RTX4090", "515.65.01", "driver", DRIVER),
        ("torch", "L40S", "535.104.05", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "H200", "580.65.06", "pytorch-2.14-cuda13.0", DRIVER),
        ("torch", "MI300X", None, "rocm-10.0-pytorch-2.13", AMD),
        ("torch", "MI250X", None, "rocm-10.0-pytorch-2.13", AMD),
        ("torch", "MI210", None, "rocm-10.0-pytorch-2.13", AMD),
        ("torch", "AMD Instinct MI250X / MI250", None, "rocm-10.0-pytorch-2.13", AMD),
        ("torch==2.1.*", "MI300X", None, "rocm-6.1-pytorch-2.1", AMD),
        ("torch==2.6.*", "MI210", None, "rocm-6.4-pytorch-2.6", AMD),
        ("torch==2.10.*", "MI250X", None, "rocm-7.2-pytorch-2.10", AMD),
        ("torch", "MI355X", None, "rocm-10.0-pytorch-2.13", AMD),
        ("torch==2.6.*", "MI355X", None, "older-than-gpu", AMD),
        ("torch", "MI300A", None, "rocm-10.0-pytorch-2.13", X86),
        ("torch", "MI300X V100", None, "gpu", AMD),
        ("tensorflow", "MI300X", None, "rocm-6.3-tensorflow-2.15", AMD),
        ("jax", "MI300X", None, "rocm-6.4-jax-0.4", ROCM_JAX),
        ("jax", "MI210", None, "rocm-6.4-jax-0.4", ROCM_JAX),
        ("cupy", "MI300X", None, "gpu", AMD),
        ("jax", "V100", "535.104.05", JAX_12, JAX),
        ("jax", "P100", "525.60.13", JAX_12, JAX),
        ("jax", "H100", "550.54.14", JAX_12, JAX),
        ("jax", "H100", "580.65.06", JAX_13, JAX),
        ("jax", "B200", "580.65.06", JAX_13, JAX),
        ("jax", "B200", "570.26", JAX_12, JAX),
        ("jax", "GH200", "580.65.06", JAX_13, JAX),
        ("jax", "GH200", "550.54.14", JAX_12, JAX),
        ("jax", "K80", "470.57.02", "dropped", JAX),
        ("jax", "A100", "470.57.02", "driver", JAX),
        ("cupy", "P100", "535.104.05", "python-3.12 with cupy-cuda12x[ctk]", CUPY),
        ("cupy", "A100", "580.65.06", "python-3.12 with cupy-cuda13x[ctk]", CUPY),
        ("cupy", "A100", "470.57.02", "driver", CUPY),
        ("tensorflow", "RTX5090", "570.26", "ngc-tensorflow-25.02-tf2", INVALID_PTX),
        ("tensorflow", "RTX5080", "581.29", "ngc-tensorflow-25.02-tf2", INVALID_PTX),
        ("tensorflow", "B200", "580.65.06", "?ngc-tensorflow-25.02-tf2", INVALID_PTX),
        ("tensorflow==2.15.*", "RTX5090", "580.65.06", "ptx-fails", INVALID_PTX),
        ("tensorflow", "RTX5090", "560.28.03", "driver", BLACKWELL),
        ("tensorflow", "A40", "535.104.05", "tensorflow-2.15", MINOR),
        ("tensorflow", "RTX3090", "470.57.02", "tensorflow-2.10", MINOR),
        ("tensorflow==2.4.*", "RTX3090", "460.32.03", "tensorflow-2.4", MINOR),
        ("torch", "T4", "450.80.02", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "T4", "535.104.05", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "T4", "580.65.06", "pytorch-2.14-cuda13.0", DRIVER),
        ("torch", "A100", "460.32.03", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "A100", "535.104.05", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "A100", "570.26", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "A100", "580.65.06", "pytorch-2.14-cuda13.0", DRIVER),
        ("torch", "H100", "525.60.13", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "H100", "535.104.05", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "H100", "550.54.14", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "H100", "580.65.06", "pytorch-2.14-cuda13.0", DRIVER),
        ("torch", "H100", "590.44.01", "pytorch-2.14-cuda13.0", DRIVER),
        ("torch", "B200", "570.26", "pytorch-2.11-cuda12.8", TORCH),
        ("torch", "B200", "580.65.06", "pytorch-2.14-cuda13.0", TORCH),
        ("torch", "RTX5090", "570.26", "pytorch-2.11-cuda12.8", TORCH),
        ("torch", "RTX5090", "580.65.06", "pytorch-2.14-cuda13.0", TORCH),
        ("torch", "RTX5090", "590.44.01", "pytorch-2.14-cuda13.0", TORCH),
        ("torch", "GH200", "550.54.14", "?ngc-pytorch-25.06", ARM),
        ("torch", "GH200", "580.65.06", "?ngc-pytorch-26.08", ARM),
        ("torch", "GB10", "580.65.06", "?ngc-pytorch-26.08", ARM),
        ("torch", "Orin", "580.65.06", "?ngc-pytorch-26.08", JETSON),
        ("torch", "K20X", "470.57.02", "?pytorch-2.0-cuda11.7", UNKNOWN),
        ("torch", "K10", "470.57.02", "?pytorch-1.4-cuda10.1", KEPLER),
        ("torch", "K20X", "525.60.13", "driver", LAST),
        ("torch", "M10", "535.104.05", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "M60", "580.65.06", "pytorch-2.13-cuda12.6", LAST),
        ("torch", "M60", "595.45.04", "driver", LAST),
        ("torch", "P4", "470.256.02", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "P2000", "590.44.01", "driver", LAST),
        ("torch", "TITANV", "535.104.05", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "V100S", "450.80.02", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "T1000", "460.32.03", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "GTX1660", "580.65.06", "pytorch-2.14-cuda13.0", DRIVER),
        ("torch", "A30", "450.80.02", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "A2", "470.57.02", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "A10G", "525.60.13", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "A800", "550.54.14", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "A100X", "535.104.05", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "L2", "535.104.05", "pytorch-2.13-cuda12.6", MINOR),
        ("torch", "L20", "580.65.06", "pytorch-2.14-cuda13.0", DRIVER),
        ("torch", "L4", "515.65.01", "driver", DRIVER),
        ("torch", "RTX2000ADA", "570.26", "pytorch-2.13-cuda12.6", MINOR),
        ("torch", "H20", "550.54.14", "pytorch-2.13-cuda12.6", DRIVER),
        ("torch", "H800", "520.61.05", "pytorch-2.7-cuda11.8", DRIVER),
        ("torch", "H100", "515.43.04", "driver", DRIVER),
        ("torch", "B100", "570.26", "pytorch-2.11-cuda12.8", TORCH),
        ("torch", "B100", "565.57.01", "driver", BLACKWELL),
        ("torch", "RTX5050", "580.65.06", "pytorch-2.14-cuda13.0", TORCH),
        ("torch", "RTXPRO2000", "560.35.03", "driver", BLACKWELL),
        ("torch", "TX2", "535.104.05", "?ngc-pytorch-25.06", JETSON),
        ("torch", "V100 T4", "580.65.06", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "A100 B200", "570.26", "pytorch-2.11-cuda12.8", TORCH),
        ("torch", "H100 MI300X", None, "gpu", AMD),
        ("torch", "MI50", None, "?rocm-10.0-pytorch-2.13", GFX906),
        ("torch", "MI60", None, "?rocm-10.0-pytorch-2.13", GFX906),
        ("torch", "MI100", None, "rocm-10.0-pytorch-2.13", AMD),
        ("torch==2.1.*", "MI325X", None, "rocm-6.1-pytorch-2.1", AMD),
        ("torch==2.10.*", "MI350X", None, "rocm-7.2-pytorch-2.10", AMD),
        ("torch==2.6.*", "MI350X", None, "older-than-gpu", AMD),
        ("tensorflow", "T4", "450.80.02", "tensorflow-2.10", MINOR),
        ("tensorflow", "V100", "580.65.06", "tensorflow-2.15", TENSORFLOW),
        ("tensorflow", "L4", "525.60.13", "tensorflow-2.15", MINOR),
        ("tensorflow", "RTXPRO6000", "580.65.06", "ngc-tensorflow-25.02-tf2", INVALID_PTX),
        ("tensorflow", "K20X", "470.57.02", "tensorflow-2.10", TENSORFLOW),
        ("tensorflow", "H20", "550.54.14", "tensorflow-2.15", PTX),
        ("jax", "M60", "525.60.13", JAX_12, JAX),
        ("jax", "M10", "550.54.14", "dropped", JAX),
        ("jax", "L40S", "570.26", JAX_12, JAX),
        ("jax", "RTX5090", "580.65.06", JAX_13, JAX),
        ("jax", "T4", "580.65.06", JAX_13, JAX),
        ("jax", "V100", "450.80.02", "driver", JAX),
        ("jax", "MI250X", None, "rocm-6.4-jax-0.4", ROCM_JAX),
        ("jax", "MI50", None, "?rocm-6.4-jax-0.4", GFX906),
        ("jax", "GB200", "570.26", JAX_12, JAX),
        ("cupy", "V100", "580.65.06", "python-3.12 with cupy-cuda12x[ctk]", CUPY),
        ("cupy", "M10", "535.104.05", "python-3.12 with cupy-cuda12x[ctk]", CUPY),
        ("cupy", "K80", "470.57.02", "dropped", CUPY),
        ("cupy", "H100", "525.60.13", "python-3.12 with cupy-cuda12x[ctk]", CUPY),
        ("torch", "V100 A100 H100", "535.104.05", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch", "V100 B200", "570.26", "pytorch-2.10-cuda12.8", VOLTA),
        ("torch", "V100 B200", "580.65.06", "pytorch-2.10-cuda12.8", VOLTA),
        ("torch", "P100 B200", "580.65.06", "?ngc-pytorch-25.06", UNKNOWN),
        ("torch==2.6.*", "V100", "450.80.02", "pytorch-2.6-cuda11.8", DRIVER),
        ("torch==2.6.*", "V100", "525.60.13", "pytorch-2.6-cuda12.4", VOLTA),
        ("torch==2.6.*", "H100", "535.104.05", "pytorch-2.6", DRIVER),
        ("torch==2.6.*", "B200", "570.26", "?ngc-pytorch-25.01", UNKNOWN),
        ("torch==2.1.*", "A100", "470.57.02", "framework-version", DRIVER),
        ("torch==2.1.*", "A100", "535.104.05", "pytorch-2.1-cuda12.1", DRIVER),
        ("torch>=2.12", "V100", "535.104.05", "pytorch-2.13-cuda12.6", VOLTA),
        ("torch>=2.12", "B200", "570.26", "framework-version", TORCH),
        ("torch>=2.12", "B200", "580.65.06", "pytorch-2.14-cuda13.0", TORCH),
        ("tensorflow", "K80", "418.87.01", "tensorflow-2.1", TENSORFLOW),
        ("tensorflow", "K80", "470.57.02", "tensorflow-2.10", TENSORFLOW),
        ("tensorflow", "P100", "418.87.01", "tensorflow-2.1", TENSORFLOW),
        ("tensorflow", "P100", "470.57.02", "tensorflow-2.10", TENSORFLOW),
        ("tensorflow", "P100", "525.60.13", "tensorflow-2.15", TENSORFLOW),
        ("tensorflow", "V100", "418.87.01", "tensorflow-2.1", TENSORFLOW),
        ("tensorflow", "V100", "450.80.02", "tensorflow-2.10", TENSORFLOW),
        ("tensorflow", "V100", "535.104.05", "tensorflow-2.15", TENSORFLOW),
        ("tensorflow", "T4", "418.87.01", "tensorflow-2.1", TENSORFLOW),
        ("tensorflow", "T4", "535.104.05", "tensorflow-2.15", TENSORFLOW),
        ("tensorflow", "A100", "450.80.02", "tensorflow-2.10", TENSORFLOW),
        ("tensorflow", "A100", "470.57.02", "tensorflow-2.10", TENSORFLOW),
        ("tensorflow", "A100", "525.60.13", "tensorflow-2.15", TENSORFLOW),
        ("tensorflow", "A100", "580.65.06", "tensorflow-2.15", TENSORFLOW),
        ("tensorflow", "H100", "525.60.13", "tensorflow-2.14", PTX),
        ("tensorflow", "H100", "535.104.05", "tensorflow-2.15", PTX),
        ("tensorflow", "H100", "535.43.02", "tensorflow-2.14", PTX),
        ("tensorflow", "H100", "545.23.06", "tensorflow-2.15", TENSORFLOW),
        ("tensorflow", "Orin", "580.65.06", "?ngc-tensorflow-25.02-tf2", JETSON),
        ("tensorflow==2.1.*", "V100", "418.87.01", "tensorflow-2.1", TENSORFLOW),
        ("tensorflow==2.1.*", "V100", "580.65.06", "tensorflow-2.1", TENSORFLOW),
        ("tensorflow==2.1.*", "A100", "450.80.02", "framework-version", FIRST),
        ("tensorflow==1.15.*", "V100", "410.48", "tensorflow-1.15", TENSORFLOW),
        ("tensorflow==1.15.*", "V100", "535.104.05", "tensorflow-1.15", TENSORFLOW),
        ("tensorflow==1.15.*", "H100", "580.65.06", "?ngc-tensorflow-21.12-tf1", UNKNOWN),
        ("tensorflow==1.15.*", "A100", "535.104.05", "?ngc-tensorflow-21.12-tf1", UNKNOWN),
        ("torch", "B200", "535.104.05", "driver", FIRST),
        ("tensorflow", "RTX5090", "580.65.06", "ngc-tensorflow-25.02-tf2", INVALID_PTX),
        ("tensorflow==2.18.*", "A100", "550.54.14", "framework-version", BROKEN),
        ("tensorflow", "GH200", "580.65.06", "?ngc-tensorflow-25.02-tf2", ARM),
    ],
)
def test_machine_gets_its_base(framework: str, gpus: str, driver: str | None, expected: str, source: str) -> None:
    """`?` marks a base of which not all is recorded; a word without a version is the rule that leaves none."""
    choice = ask(framework, gpus, driver)
    if choice.fitting:
        best = choice.fitting[0].name
        assert f"{'?' if best in choice.unsure else ''}{best}" == expected, source
    else:
        rules = {found.rule for found in choice.excluded.values()} - {"framework"}
        assert expected in rules, source


def ask(framework: str, gpus: str, driver: str | None) -> Choice:
    known, versions = parse_framework(framework)
    wanted = (find_gpu(gpus),) if "/" in gpus else tuple(map(find_gpu, gpus.split()))
    request = BaseRequest(framework=known, versions=versions, gpus=wanted, driver=driver)
    return choose_with_wheels(BASES.values(), WHEELS.values(), request)


def test_there_are_a_hundred_questions() -> None:
    (mark,) = test_machine_gets_its_base.pytestmark  # type: ignore[attr-defined]
    assert len({row[:3] for row in mark.args[1]}) >= 100


@pytest.mark.parametrize(("driver", "offered"), [("470.57.02", False), ("525.60.13", True)])
def test_base_of_cuda_12_3_is_possible_only_with_a_driver_for_it(driver: str, offered: bool) -> None:
    choice = ask("torch", "A100", driver)
    assert ("ngc-pytorch-24.02" in {base.name for base in choice.fitting}) is offered


@pytest.mark.parametrize("gpu", ["MI300X", "MI250X", "MI210"])
def test_gpu_of_amd_reaches_every_base_for_rocm(gpu: str) -> None:
    found = {base.name for base in ask("torch", gpu, None).fitting}
    assert found == {name for name, base in BASES.items() if base.rocm and base.framework == "torch"}
    assert len(found) == 4


def test_what_is_certain_comes_first_and_what_is_not_says_why() -> None:
    choice = ask("tensorflow", "A100", "550.54.14")
    certain = [base.name not in choice.unsure for base in choice.fitting]
    assert certain == sorted(certain, reverse=True)
    assert 0 < sum(certain) < len(certain)
    assert all(reason.reason for reason in choice.unsure.values())
