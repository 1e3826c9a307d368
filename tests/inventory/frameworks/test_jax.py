"""What a build of JAX opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import SITE, audit, codes
from tests.inventory.making import distribution
from tests.real.wheels import elf
from toolkit.inventory.frameworks.jax import untold_sonames

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize(
    ("plugin", "rocm", "files"), [("rocm60", "6", True), ("rocm7", "7", True), ("rocm7", "7", False)]
)
def test_jax_for_amd_comes_with_a_plugin(tmp_path: Path, plugin: str, rocm: str, files: bool) -> None:
    library = {f"jax_plugins/xla_{plugin}/xla_rocm_plugin.so": b""} if files else {}
    parts = [distribution(name, "0.5.0", SITE) for name in ("jax", "jaxlib", f"jax-{plugin}-plugin")]
    found = audit(tmp_path, *parts, distribution(f"jax-{plugin}-pjrt", "0.5.0", SITE, library))
    assert found.frameworks[0].facts.build.rocm == rocm
    assert found.verdict.value == ("gpu-ready" if files else "gpu-broken")
