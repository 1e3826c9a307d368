"""Images that look ready and are not: each was called gpu-ready once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import NVIDIA, READY, SITE, Files, audit, codes, environment, jax, library, nvjitlink, torch
from tests.inventory.making import distribution, variables_after

if TYPE_CHECKING:
    from pathlib import Path


def test_a_torch_with_all_its_libraries_is_ready(tmp_path: Path) -> None:
    found = audit(tmp_path, torch())
    assert found.verdict.value == "gpu-ready"
    assert codes(found).keys() <= READY


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
    older = {"opt/cudnn/libcudnn.so.9": "-> libcudnn.so.9.1.0", "opt/cudnn/libcudnn.so.9.1.0": b""}
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
        **{f"{NVIDIA}/{directory}/lib/lib{name}": b"" for directory, name in names.items()},
    }


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
