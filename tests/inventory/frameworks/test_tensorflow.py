"""What a build of TensorFlow opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import SITE, audit
from tests.inventory.making import distribution
from tests.real.wheels import elf
from toolkit.inventory.frameworks.tensorflow import sonames

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("cuda", "cudnn", "defined", "expected"),
    [
        ("9.0", "", {"CUDA": "9.0", "CUDNN": "7"}, ["cudart.so.9.0", "cublas.so.9.0", "cudnn.so.7"]),
        ("10.0", "7", {"CUDA": "10.0", "CUDA_LIB": "10.0"}, ["cudart.so.10.0", "cublas.so.10.0", "cudnn.so.7"]),
        ("10.1", "7", {"CUDA": "10.1", "CUDA_LIB": "10"}, ["cudart.so.10.1", "cublas.so.10", "cudnn.so.7"]),
        ("12.2", "8", {"CUDA": "12.2", "CUDART": "12", "CUBLAS": "12"}, ["cudart.so.12", "cublas.so.12", "cudnn.so.8"]),
    ],
)
def test_the_libraries_that_tensorflow_opens(
    cuda: str, cudnn: str, defined: dict[str, str], expected: list[str]
) -> None:
    """The values are those of the wheels 1.12.0, 2.0.0, 2.1.0 and 2.15.1."""
    found = sonames(cuda, cudnn, {f"TF_{name}_VERSION": f'"{value}"' for name, value in defined.items()})
    assert {f"lib{name}" for name in expected} <= set(found)


def test_tensorflow_until_2_2_says_a_major_version_where_the_library_has_a_minor(tmp_path: Path) -> None:
    info = "is_cuda_build = True\ncuda_version_number = '10'\ncudnn_version_number = '7'\n"
    header = '#define TF_CUDA_VERSION "10.0"\n#define TF_CUDA_LIB_VERSION "10.0"\n'
    package = {
        "tensorflow_core/__init__.py": "",
        "tensorflow_core/python/platform/build_info.py": info,
        "tensorflow_core/include/third_party/gpus/cuda/cuda_config.h": header,
    }
    names = ("cudart.so.10.0", "cublas.so.10.0", "cufft.so.10.0", "cusolver.so.10.0", "cusparse.so.10.0", "cudnn.so.7")
    libraries = {f"usr/local/cuda-10.0/lib64/lib{name}": elf([], "", False, "") for name in names}
    path = {".singularity.d/env/90-environment.sh": "export LD_LIBRARY_PATH=/usr/local/cuda-10.0/lib64${B:+:${B}}\n"}
    found = audit(tmp_path, distribution("tensorflow-gpu", "2.0.0", SITE, package), libraries, path)
    assert found.verdict.value == "gpu-ready"
    assert found.frameworks[0].facts.build.cuda == "10.0"


@pytest.mark.parametrize(("header", "rocm"), [("#define TF_ROCM_VERSION 60000\n", "6.0.0"), ("", "")])
def test_tensorflow_for_amd_names_its_rocm(tmp_path: Path, header: str, rocm: str) -> None:
    package = {
        "tensorflow/__init__.py": "",
        "tensorflow/python/platform/build_info.py": "import collections\nbuild_info = collections.OrderedDict("
        "[('is_cuda_build', False), ('is_rocm_build', True), ('is_tensorrt_build', False)])\n",
        "tensorflow/include/external/local_config_rocm/rocm/rocm/rocm_config.h": header,
    }
    found = audit(tmp_path, distribution("tensorflow-rocm", "2.14.0.600", SITE, package))
    assert found.verdict.value == "gpu-ready"
    assert found.frameworks[0].facts.build.rocm == rocm
