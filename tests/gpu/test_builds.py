"""What builds of long ago say of themselves: other files and other names than today's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import distribution, fill, python_files
from tests.real.wheels import elf
from toolkit.gpu.audit import Audit, audit_image
from toolkit.gpu.facts import TargetMachine
from toolkit.inventory.frameworks.jax import untold_sonames
from toolkit.inventory.frameworks.tensorflow import sonames

if TYPE_CHECKING:
    from pathlib import Path

SITE = "usr/local/lib/python3.11/site-packages"


def audit(directory: Path, *parts: dict[str, str | bytes]) -> Audit:
    for part in (python_files(), *parts):
        fill(directory, part)
    return audit_image(directory, TargetMachine())


def codes(found: Audit) -> dict[str, str]:
    return {one.code: one.message for one in found.findings}


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


def test_a_jax_plugin_that_lists_no_libraries_wants_them_all_the_same(tmp_path: Path) -> None:
    plugin = {"jax_plugins/xla_cuda12/xla_cuda_plugin.so": elf([], "", False, "")}
    parts = [distribution(name, "0.4.34", SITE) for name in ("jax", "jaxlib", "jax-cuda12-plugin")]
    found = audit(tmp_path, *parts, distribution("jax-cuda12-pjrt", "0.4.35", SITE, plugin))
    assert found.verdict.value == "gpu-broken"
    assert "libcusolver.so.11" in codes(found)["missing-cuda-library"]
    assert "plugin-out-of-step" not in codes(found), "before 0.5 nothing compares the versions"


def test_a_jax_plugin_s_requirements_say_which_cudnn() -> None:
    requires = ['nvidia-nccl-cu12>=2.18.1; extra == "with_cuda"', 'nvidia-cudnn-cu12<9.0,>=8.9; extra == "with_cuda"']
    assert untold_sonames("12", requires)[-1] == "libcudnn.so.8"
    assert "libcudnn" not in str(untold_sonames("12", []))
    assert untold_sonames("13", requires) == []


def test_cupy_7_is_linked_where_its_own_modules_are(tmp_path: Path) -> None:
    modules = {
        "cupy/__init__.py": "",
        "cupy/cuda/cublas.cpython-311-x86_64-linux-gnu.so": elf(["libcublas.so.9.2"], "", False, ""),
        "cupy/cuda/nvrtc.cpython-311-x86_64-linux-gnu.so": elf(["libnvrtc.so.9.2"], "", False, ""),
    }
    found = audit(tmp_path, distribution("cupy-cuda92", "7.8.0", SITE, modules))
    assert found.verdict.value == "gpu-broken"
    assert codes(found)["missing-cuda-library"].endswith("libcublas.so.9.2, libnvrtc.so.9.2.")


@pytest.mark.parametrize(("version", "verdict"), [("1.4.0", "gpu-ready"), ("2.5.1", "gpu-broken")])
def test_torch_until_1_4_keeps_its_cuda_code_in_libtorch(tmp_path: Path, version: str, verdict: str) -> None:
    package = {"torch/__init__.py": "", "torch/version.py": f"__version__ = '{version}'\ncuda = '10.1'\n"}
    libraries = {f"torch/lib/{name}": elf([], "", False, "") for name in ("libtorch.so", "libc10_cuda.so")}
    found = audit(tmp_path, distribution("torch", version, SITE, {**package, **libraries}))
    assert found.verdict.value == verdict


def test_a_distribution_that_only_asks_for_another_is_no_second_framework(tmp_path: Path) -> None:
    """tensorflow 2.15.1 for aarch64 holds no file, and requires tensorflow-cpu-aws."""
    package = {"tensorflow/__init__.py": "", "tensorflow/python/platform/build_info.py": "build_info = {}\n"}
    empty = distribution("tensorflow", "2.15.1", SITE)
    found = audit(tmp_path, empty, distribution("tensorflow-cpu-aws", "2.15.1", SITE, package))
    assert found.verdict.value == "cpu-only"
    assert "duplicate-framework" not in codes(found)
