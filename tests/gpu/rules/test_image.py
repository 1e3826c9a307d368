"""The image as a whole: leftovers, its architecture, its libraries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpu.judged import GPU, PYTHON, TORCH, audit, codes, dist, framework, image
from toolkit.gpu.facts import TargetMachine
from toolkit.gpu.rules.image import wheel_major
from toolkit.inventory.contents.model import SystemPackage
from toolkit.support.findings import Verdict


@pytest.mark.parametrize(
    ("path", "way", "code", "verdict"),
    [
        ("/usr/local/cuda/lib64/stubs/libcuda.so.1", "LD_LIBRARY_PATH", "stub-libcuda-first", Verdict.GPU_BROKEN),
        ("/usr/local/cuda/lib64/stubs/libcuda.so.1", "ld.so.cache", "stub-libcuda", Verdict.GPU_READY),
        ("/usr/local/cuda/compat/libcuda.so.1", "LD_LIBRARY_PATH", "compat-libcuda-first", Verdict.GPU_READY),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "ld.so.cache", "own-libcuda", Verdict.GPU_READY),
    ],
)
def test_a_libcuda_of_the_images_own(path: str, way: str, code: str, verdict: Verdict) -> None:
    found = audit(framework("torch", "2.5.1", TORCH), drivers=((path, way),))
    assert code in codes(found)
    assert found.verdict is verdict


def test_leftover_cuda_wheels() -> None:
    new = (dist("nvidia-cublas", "13.1.0"), dist("nvidia-cudnn-cu13", "9.19"))
    old = (dist("nvidia-cublas-cu12", "12.4.5.8"), dist("nvidia-cudnn-cu12", "9.1"))
    torch = framework("torch", "2.11.0", replace(GPU, cuda="13.0"))
    assert "mixed-cuda-wheels" not in codes(audit(torch, inventory=image(*new)))
    found = audit(torch, inventory=image(*new, *old))
    message = next(one.message for one in found.findings if one.code == "mixed-cuda-wheels")
    assert "nvidia-cublas-cu12, nvidia-cudnn-cu12" in message
    jax = framework("jax", "0.6.2", replace(GPU, cuda="12"))
    assert "mixed-cuda-wheels" not in codes(audit(torch, jax, inventory=image(*new, *old)))


def test_the_major_of_a_wheel() -> None:
    assert wheel_major(dist("nvidia-cublas-cu12", "12.4")) == "12"
    assert wheel_major(dist("nvidia-cublas", "13.1")) == "13"
    assert wheel_major(dist("nvidia-cufft", "12.0")) is None
    assert wheel_major(dist("nvidia-ml-py", "13.6")) is None


def test_the_image_as_a_whole() -> None:
    opencv = (dist("opencv-python", "4.9"), dist("opencv-contrib-python", "4.10"))
    conda = replace(PYTHON, prefix="/opt/conda", origin="conda")
    mixed = image(
        *opencv, dist("numpy", "2.0", installer="pip"), environment={"NVIDIA_REQUIRE_CUDA": "cuda>=12.6 brand=tesla"},
        conda_packages=(SystemPackage("numpy", "1.26", "h1", "/opt/conda"),), interpreters=(conda,),
    )  # fmt: skip
    elsewhere = TargetMachine(architecture="aarch64", glibc="2.39")
    found = audit(inventory=mixed, target=elsewhere, sif_architecture="arm64", disputed=("/opt/x",))
    assert codes(found) == {
        "duplicate-module", "mixed-pip-conda", "user-site-enabled", "wrong-architecture", "architecture-contradiction",
        "glibc-older-than-host", "base-requires-cuda", "no-framework", "layer-marks-ignored",
    }  # fmt: skip
    assert codes(audit(framework("torch", "2.5.1", TORCH))) == {"minimum-driver", "gpu-generations"}
