"""What a build of CuPy opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.gpu.small_images import SITE, audit, codes
from tests.inventory.making import distribution
from tests.real.wheels import elf

if TYPE_CHECKING:
    from pathlib import Path


def test_cupy_7_is_linked_where_its_own_modules_are(tmp_path: Path) -> None:
    modules = {
        "cupy/__init__.py": "",
        "cupy/cuda/cublas.cpython-311-x86_64-linux-gnu.so": elf(["libcublas.so.9.2"], "", False, ""),
        "cupy/cuda/nvrtc.cpython-311-x86_64-linux-gnu.so": elf(["libnvrtc.so.9.2"], "", False, ""),
    }
    found = audit(tmp_path, distribution("cupy-cuda92", "7.8.0", SITE, modules))
    assert found.verdict.value == "gpu-broken"
    assert codes(found)["missing-cuda-library"].endswith("libcublas.so.9.2, libnvrtc.so.9.2.")
