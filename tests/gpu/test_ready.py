"""Images that look ready and are not: each was called gpu-ready once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import READY, SITE, Files, audit, codes, environment, jax, library, torch
from tests.inventory.making import distribution, variables_after

if TYPE_CHECKING:
    from pathlib import Path


def test_a_torch_with_all_its_libraries_is_ready(tmp_path: Path) -> None:
    found = audit(tmp_path, torch())
    assert found.verdict.value == "gpu-ready"
    assert codes(found).keys() <= READY


def test_a_library_of_the_framework_that_no_record_lists_is_missing(tmp_path: Path) -> None:
    files = torch(without="libc10_cuda.so")
    record = next(path for path in files if path.endswith("torch-2.5.1.dist-info/RECORD"))
    files[record] = "\n".join(line for line in str(files[record]).splitlines() if "c10_cuda" not in line)
    found = audit(tmp_path, files)
    assert "libc10_cuda.so (for libtorch_cuda.so)" in codes(found)["missing-library"]


def test_a_system_library_counts_where_there_is_a_system(tmp_path: Path) -> None:
    files = torch()
    files[f"{SITE}/torch/lib/libtorch_global_deps.so"] = library("libgomp.so.1", "libc.so.6")
    assert audit(tmp_path / "bare", files).verdict.value == "gpu-ready", "nothing is known of the system"
    libc = {"usr/lib64/libc.so.6": library(soname="libc.so.6")}
    assert "libgomp.so.1" in codes(audit(tmp_path / "slim", files, libc))["missing-library"]


def test_jax_and_torch_refuse_an_older_cudnn_as_tensorflow_does(tmp_path: Path) -> None:
    found = audit(tmp_path / "torch", torch(cudnn="9.0.0.312"))
    assert "was compiled with cuDNN 9.1" in codes(found)["cudnn-too-old"]
    plugin = library(rpath="$ORIGIN/../../nvidia/cudnn/lib")
    initialisation = '_load("cudnn", ["libcudnn.so.9"])\n'
    pjrt = {"jax_plugins/xla_cuda12/xla_cuda_plugin.so": plugin, "jax_plugins/xla_cuda12/__init__.py": initialisation}
    requires = 'Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.8; extra == "with-cuda"\n'
    parts = {
        **distribution("jax-cuda12-pjrt", "0.6.2", SITE, pjrt),
        **distribution("jax-cuda12-plugin", "0.6.2", SITE, extra=requires),
        **distribution("nvidia-cudnn-cu12", "9.1.0.70", SITE, {"nvidia/cudnn/lib/libcudnn.so.9": b""}),
    }
    found = audit(tmp_path / "jax", jax(extra=parts))
    assert found.verdict.value == "gpu-broken"
    assert "was compiled with cuDNN 9.8" in codes(found)["cudnn-too-old"]


@pytest.mark.parametrize(("jaxlib", "broken"), [("0.6.2", False), ("0.5.0", True), ("0.7.0", True)])
def test_jax_refuses_a_jaxlib_out_of_step(tmp_path: Path, jaxlib: str, broken: bool) -> None:
    found = audit(tmp_path, jax(jaxlib=jaxlib))
    assert ("companion-out-of-step" in codes(found)) is broken


def test_a_jaxlib_for_cuda_11_wants_its_libraries(tmp_path: Path) -> None:
    files = {"jaxlib/xla_extension.so": library()}
    parts = [distribution("jaxlib", "0.4.13+cuda11.cudnn86", SITE, files), distribution("jax", "0.4.13", SITE)]
    found = audit(tmp_path, *parts)
    assert found.verdict.value == "gpu-broken"
    for soname in ("libcudart.so.11.0", "libcufft.so.10", "libcudnn.so.8"):
        assert soname in codes(found)["missing-cuda-library"]


@pytest.mark.parametrize(
    ("deleted", "said"),
    [
        ("jax_cuda12_plugin/cuda_plugin_extension.so", "jax_cuda12_plugin/cuda_plugin_extension.so"),
        ("jax_plugins/xla_cuda12/xla_cuda_plugin.so", "some of its files are missing"),
    ],
)
def test_a_deleted_file_of_the_jax_plugin_is_told(tmp_path: Path, deleted: str, said: str) -> None:
    plugin = distribution("jax-cuda12-plugin", "0.6.2", SITE, {"jax_cuda12_plugin/cuda_plugin_extension.so": b""})
    pjrt = distribution("jax-cuda12-pjrt", "0.6.2", SITE, {"jax_plugins/xla_cuda12/xla_cuda_plugin.so": library()})
    files = {**plugin, **pjrt}
    del files[f"{SITE}/{deleted}"]
    found = audit(tmp_path, jax(extra=files))
    assert found.verdict.value == "gpu-broken"
    assert said in codes(found)["framework-incomplete"]


@pytest.mark.parametrize("command", ["unset A B", "unset -v A; unset B", 'unset "A" B'])
def test_unset_in_a_script(command: str) -> None:
    variables = variables_after("A=1; B=2; C=3", command)
    assert {name: value for name, value in variables.items() if name in "ABC"} == {"C": "3"}


@pytest.mark.parametrize(
    ("files", "script"),
    [
        ({"opt/driver": "-> /usr/local/cuda/lib64/stubs"}, "export LD_LIBRARY_PATH=/opt/driver"),
        ({"opt/lib/libcuda.so.1": "-> /usr/local/cuda/lib64/stubs/libcuda.so"}, "export LD_LIBRARY_PATH=/opt/lib"),
        ({}, "export LD_PRELOAD=/usr/local/cuda/lib64/stubs/libcuda.so"),
        ({}, "export LD_PRELOAD='/nothing.so /usr/local/cuda/lib64/stubs/libcuda.so.1'"),
    ],
)
def test_a_stub_by_whatever_way(tmp_path: Path, files: Files, script: str) -> None:
    stubs = {"usr/local/cuda/lib64/stubs/libcuda.so": b"", "usr/local/cuda/lib64/stubs/libcuda.so.1": "-> libcuda.so"}
    found = audit(tmp_path, torch(), stubs, files, environment(script))
    assert "stub-libcuda-first" in codes(found)
    assert found.verdict.value == "gpu-broken"
