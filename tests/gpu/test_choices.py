"""Which base of the shipped catalogue a machine gets: GPU, driver and framework, each with the fact that decides."""

from __future__ import annotations

import pytest

from toolkit.gpu.choosing import BaseRequest, Gpu, choose, parse_framework
from toolkit.gpu.compatibility import parse_gpu
from toolkit.recipes.bases import bases_in
from toolkit.support.paths import shipped

BASES = tuple(bases_in(shipped("defs")).values())

DRIVER = "NVIDIA, CUDA Toolkit Release Notes, table 3: CUDA 10.1 needs 418.39, 11 needs 450.80.02, 12 525.60.13, 13 580"
TORCH = "github.com/pytorch/pytorch, issues 172352 and 175253: architectures of the cu126, cu128 and cu130 builds"
VOLTA = "NVIDIA's support matrix of cuDNN 9.10.2, the last with Pascal and Volta; CUDA 13 dropped both"
TENSORFLOW = "build_info.py and cuda_config.h of the TensorFlow wheels on PyPI"
PTX = "NVIDIA, CUDA Compatibility: PTX needs its toolkit's driver (12.3: 545.23.06); TensorFlow 2.15 has no sm_90"
BROKEN = "github.com/tensorflow/build, issue 217: the image of 2.18 has cuDNN 8 for a build that needs 9"
FIRST = "NVIDIA, PTX ISA, Release Notes: sm_80 came with CUDA 11.0, sm_90 with 11.8, sm_100 and sm_120 with 12.8"
ARM = "NVIDIA's product pages: Grace Hopper and Grace Blackwell have Arm processors; pytorch/pytorch is for x86-64"
JETSON = "NVIDIA, CUDA C++ Programming Guide, Binary Compatibility: Jetson runs no code for other GPUs"
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
        ("torch", "V100", "590.44.01", "pytorch-2.13-cuda12.6", VOLTA),
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
        ("torch", "Orin", "580.65.06", "jetson", JETSON),
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
        ("tensorflow", "H100", "535.104.05", "tensorflow-2.14", PTX),
        ("tensorflow", "H100", "545.23.06", "tensorflow-2.15", TENSORFLOW),
        ("tensorflow", "Orin", "580.65.06", "jetson", JETSON),
        ("tensorflow==2.1.*", "V100", "418.87.01", "tensorflow-2.1", TENSORFLOW),
        ("tensorflow==2.1.*", "V100", "580.65.06", "tensorflow-2.1", TENSORFLOW),
        ("tensorflow==2.1.*", "A100", "450.80.02", "framework-version", FIRST),
        ("tensorflow==1.15.*", "V100", "410.48", "tensorflow-1.15", TENSORFLOW),
        ("tensorflow==1.15.*", "V100", "535.104.05", "tensorflow-1.15", TENSORFLOW),
        ("tensorflow==1.15.*", "H100", "580.65.06", "?ngc-tensorflow-21.12-tf1", UNKNOWN),
        ("tensorflow==1.15.*", "A100", "535.104.05", "?ngc-tensorflow-21.12-tf1", UNKNOWN),
        ("torch", "B200", "535.104.05", "driver", FIRST),
        ("tensorflow", "RTX5090", "580.65.06", "?tensorflow-2.15", FIRST),
        ("tensorflow==2.18.*", "A100", "550.54.14", "framework-version", BROKEN),
        ("tensorflow", "GH200", "580.65.06", "?ngc-tensorflow-25.02-tf2", ARM),
    ],
)
def test_machine_gets_its_base(framework: str, gpus: str, driver: str, expected: str, source: str) -> None:
    """`?` marks a base of which not all is recorded; a word without a version is the rule that leaves none."""
    known, versions = parse_framework(framework)
    wanted = tuple(Gpu(name, parse_gpu(name)) for name in gpus.split())
    choice = choose(BASES, BaseRequest(framework=known, versions=versions, gpus=wanted, driver=driver))
    if choice.fitting:
        best = choice.fitting[0].name
        assert f"{'?' if best in choice.unsure else ''}{best}" == expected, source
    else:
        rules = {found.rule for found in choice.excluded.values()} - {"framework", "gpu"}
        assert expected in rules, source
