"""Which libraries a framework loads, and which other ones come first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import NVIDIA, SITE, Files, audit, codes, environment, library, nvjitlink, torch
from tests.inventory.making import distribution

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("without", "code", "said"),
    [
        ("libnvJitLink.so.12", "missing-cuda-library", "libnvJitLink.so.12 (for libcusparse.so.12)"),
        ("libcudnn_graph.so.9", "missing-cuda-library", "libcudnn_graph.so.9 (for libcudnn.so.9)"),
        ("libcudnn_heuristic.so.9", "framework-incomplete", "libcudnn_heuristic.so.9"),
        ("libc10_cuda.so", "framework-incomplete", "lib/libc10_cuda.so"),
        ("libcudart.so.12", "missing-cuda-library", "libcudart.so.12"),
    ],
)
def test_a_library_that_only_another_one_needs_is_missing(tmp_path: Path, without: str, code: str, said: str) -> None:
    found = audit(tmp_path, torch(without=without))
    assert found.verdict.value == "gpu-broken"
    assert said in codes(found)[code]


@pytest.mark.parametrize("first", ["opt/cuda-12.3/lib64", None])
def test_an_older_nvjitlink_on_the_path_breaks_cusparse(tmp_path: Path, first: str | None) -> None:
    """cuSPARSE has a DT_RUNPATH: LD_LIBRARY_PATH comes before it."""
    older = {"opt/cuda-12.3/lib64/libnvJitLink.so.12": nvjitlink("12_3")}
    found = audit(tmp_path, torch(), older, environment(f"export LD_LIBRARY_PATH=/{first}\n" if first else ""))
    assert found.verdict.value == ("gpu-broken" if first else "gpu-ready")
    if first:
        assert "__nvJitLinkComplete_12_4, with /opt/cuda-12.3/lib64" in codes(found)["cuda-libraries-disagree"]


def test_the_rpath_of_torch_comes_before_the_library_path(tmp_path: Path) -> None:
    older = {"opt/cudnn/libcudnn.so.9": "-> libcudnn.so.9.0.0", "opt/cudnn/libcudnn.so.9.0.0": library()}
    found = audit(tmp_path, torch(), older, environment("export LD_LIBRARY_PATH=/opt/cudnn\n"))
    assert "cudnn-too-old" not in codes(found)


@pytest.mark.parametrize(("release", "old"), [("9.0.0", True), ("9.3.0", False)])
def test_the_library_path_comes_before_the_runpath_of_cudnn(tmp_path: Path, release: str, old: bool) -> None:
    """torch's DT_RPATH leads to libcudnn.so of the wheel, and that opens the part that tells the version elsewhere."""
    names = ("libcudnn.so.9", "libcudnn_graph.so.9")
    other = {f"opt/cudnn/{name}": f"-> {name[:-1]}{release}" for name in names}
    other |= {f"opt/cudnn/{name[:-1]}{release}": library(soname=name) for name in names}
    found = audit(tmp_path, torch(), other, environment("export LD_LIBRARY_PATH=/opt/cudnn\n"))
    assert found.verdict.value == ("gpu-broken" if old else "gpu-ready")
    assert ("/opt/cudnn/libcudnn.so.9 is 9.0.0" in codes(found).get("cudnn-too-old", "")) is old


@pytest.mark.parametrize(("library_path", "verdict"), [("", "gpu-ready"), ("/opt/cudnn", "gpu-broken")])
def test_the_library_path_comes_before_the_runpath_of_tensorflow(
    tmp_path: Path, library_path: str, verdict: str
) -> None:
    older = {"opt/cudnn/libcudnn.so.9": "-> libcudnn.so.9.1.0", "opt/cudnn/libcudnn.so.9.1.0": b"x"}
    found = audit(tmp_path, tensorflow(), older, environment(f"export LD_LIBRARY_PATH={library_path}\n"))
    assert found.verdict.value == verdict
    assert ("cudnn-too-old" in codes(found)) is bool(library_path)


@pytest.mark.parametrize(
    ("own", "verdict"), [(("cuda_runtime", "cudnn"), "gpu-ready"), (("cuda_runtime",), "gpu-broken")]
)
def test_the_runpath_of_another_library_of_tensorflow_does_not_count(
    tmp_path: Path, own: tuple[str, ...], verdict: str
) -> None:
    """As in 2.16.1, issue 63362: libtensorflow_cc's leads to cuDNN, and that of the library which opens it does not."""
    both = tensorflow()[f"{SITE}/tensorflow/libtensorflow_framework.so.2"]
    runpath = ":".join(f"$ORIGIN/../nvidia/{directory}/lib" for directory in own)
    libraries = {
        f"{SITE}/tensorflow/libtensorflow_cc.so.2": both,
        f"{SITE}/tensorflow/libtensorflow_framework.so.2": library(runpath=runpath),
    }
    found = audit(tmp_path, tensorflow(), libraries)
    assert found.verdict.value == verdict
    assert ("cuda-library-off-path" in codes(found)) is (verdict == "gpu-broken")


def tensorflow() -> Files:
    names = {"cuda_runtime": "cudart.so.12", "cudnn": "cudnn.so.9"}
    runpath = ":".join(f"$ORIGIN/../nvidia/{name}/lib" for name in names)
    header = '#define TF_CUDA_VERSION "12.5"\n#define TF_CUDART_VERSION "12"\n#define TF_CUDNN_VERSION "9"\n'
    header += "".join(f'#define TF_{library}_VERSION ""\n' for library in ("CUBLAS", "CUFFT", "CUSOLVER", "CUSPARSE"))
    files = {
        "tensorflow/__init__.py": "",
        "tensorflow/python/platform/build_info.py": "build_info = dict([('is_cuda_build', True)])\n",
        "tensorflow/include/third_party/gpus/cuda/cuda_config.h": header.replace('TF_CUDA_VERSION "12.5"', ""),
        "tensorflow/libtensorflow_framework.so.2": library(runpath=runpath, soname="libtensorflow_framework.so.2"),
    }
    extra = 'Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"\n'
    return {
        **distribution("tensorflow", "2.18.1", SITE, files, extra),
        **distribution("nvidia-cudnn-cu12", "9.3.0.75", SITE),
        **{f"{NVIDIA}/{directory}/lib/lib{name}": b"x" for directory, name in names.items()},
    }
