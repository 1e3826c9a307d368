"""What a build of ONNX Runtime says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import SITE, audit, codes, library
from tests.inventory.making import distribution

if TYPE_CHECKING:
    from pathlib import Path

CAPI = "onnxruntime/capi"
INFO = f"{CAPI}/build_and_package_info.py"
PROVIDER = f"{CAPI}/libonnxruntime_providers_cuda.so"


@pytest.mark.parametrize(
    ("info", "cuda"),
    [
        ("__version__ = '1.22.0'\ncuda_version = '12.8'\n", "12.8"),
        ("__version__ = '1.22.0'\n", "12"),
        ("no ( python", "12"),
    ],
)
def test_cuda_is_what_the_build_says_else_what_its_provider_links(tmp_path: Path, info: str, cuda: str) -> None:
    files = {
        "onnxruntime/__init__.py": "",
        INFO: f"__version__ = '1.22.0'\n{info}",
        PROVIDER: library("libcudart.so.12", "libcudnn.so.9"),
    }
    found = audit(tmp_path, distribution("onnxruntime-gpu", "1.22.0", SITE, files))
    (framework,) = found.frameworks
    assert (framework.facts.build.cuda, framework.facts.build.cudnn) == (cuda, "9")
    assert framework.facts.version == "1.22.0"
    assert framework.verdict.value == "gpu-broken"
    assert "libcudart.so.12" in codes(found)["missing-cuda-library"]


def test_a_build_without_the_provider_computes_on_the_cpu(tmp_path: Path) -> None:
    files = {"onnxruntime/__init__.py": "", INFO: "__version__ = '1.20.1'\n"}
    found = audit(tmp_path, distribution("onnxruntime", "1.20.1", SITE, files))
    assert found.verdict.value == "cpu-only"


def test_a_build_without_its_libraries_is_incomplete(tmp_path: Path) -> None:
    found = audit(tmp_path, distribution("onnxruntime-gpu", "1.22.0", SITE, {"onnxruntime/__init__.py": ""}))
    assert "framework-incomplete" in codes(found)
