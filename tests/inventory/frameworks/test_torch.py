"""What a build of PyTorch opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import SITE, audit
from tests.inventory.making import distribution
from tests.real.wheels import elf

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("version", "verdict"), [("1.4.0", "gpu-ready"), ("2.5.1", "gpu-broken")])
def test_torch_until_1_4_keeps_its_cuda_code_in_libtorch(tmp_path: Path, version: str, verdict: str) -> None:
    package = {"torch/__init__.py": "", "torch/version.py": f"__version__ = '{version}'\ncuda = '10.1'\n"}
    libraries = {f"torch/lib/{name}": elf([], "", False, "") for name in ("libtorch.so", "libc10_cuda.so")}
    found = audit(tmp_path, distribution("torch", version, SITE, {**package, **libraries}))
    assert found.verdict.value == verdict
