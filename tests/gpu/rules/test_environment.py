"""Variables of the image that hide or move the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import READY, SITE, audit, codes, environment, jax, library, torch
from tests.inventory.making import distribution

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("export CUDA_VISIBLE_DEVICES=-1", "gpu-hidden-by-environment"),
        ("CUDA_VISIBLE_DEVICES=''; export CUDA_VISIBLE_DEVICES", "gpu-hidden-by-environment"),
        ("export CUDA_VISIBLE_DEVICES=0,1", None),
        ("export CUDA_VISIBLE_DEVICES=GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", None),
        ("export CUDA_VISIBLE_DEVICES=-1\nunset CUDA_VISIBLE_DEVICES", None),
        ("export JAX_PLATFORMS=cpu", None),
    ],
)
def test_a_variable_of_the_image_hides_the_gpu(tmp_path: Path, script: str, code: str | None) -> None:
    found = audit(tmp_path, torch(), environment(script))
    assert codes(found).keys() - READY == ({code} if code else set())
    assert found.verdict.value == ("gpu-broken" if code else "gpu-ready")


@pytest.mark.parametrize(
    ("value", "severity"), [("cpu", "error"), ("tpu,cpu", "error"), ("cpu,cuda", "warning"), ("cuda", None), ("", None)]
)
def test_jax_computes_where_the_image_says(tmp_path: Path, value: str, severity: str | None) -> None:
    pjrt = distribution("jax-cuda12-pjrt", "0.6.2", SITE, {"jax_plugins/xla_cuda12/xla_cuda_plugin.so": library()})
    plugin = distribution("jax-cuda12-plugin", "0.6.2", SITE)
    found = audit(tmp_path, jax(extra={**pjrt, **plugin}), environment(f"export JAX_PLATFORMS={value}"))
    told = [finding.severity.value for finding in found.findings if finding.code == "gpu-hidden-by-environment"]
    assert told == ([severity] if severity else [])


def test_unset_takes_a_library_path_away(tmp_path: Path) -> None:
    cudart = {"opt/cuda/lib64/libcudart.so.12": library(soname="libcudart.so.12")}
    path = environment('export LD_LIBRARY_PATH="/opt/cuda/lib64"\n', "10-docker2singularity")
    files = torch(without="cuda_runtime/lib/libcudart.so.12")
    assert audit(tmp_path / "set", files, cudart, path).verdict.value == "gpu-ready"
    found = audit(tmp_path / "unset", files, cudart, path, environment("unset LD_LIBRARY_PATH\n"))
    assert found.verdict.value == "gpu-broken"
