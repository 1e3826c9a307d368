"""Images that look ready and are not: each was called gpu-ready once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import (
    NVIDIA,
    READY,
    SITE,
    Files,
    audit,
    codes,
    environment,
    jax,
    library,
    nvjitlink,
    torch,
)
from tests.inventory.contents.test_environments import venv
from tests.inventory.making import distribution, fill, python_files, squash, variables_after
from toolkit.gpu.audit import audit_image
from toolkit.gpu.facts import TargetMachine

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


VENV = SITE.replace("usr/local", "opt/venv")
CPU = distribution(
    "torch",
    "2.5.1+cpu",
    SITE,
    {"torch/__init__.py": "", "torch/version.py": "__version__ = '2.5.1+cpu'\ncuda = None\n"},
)
CUDART = library(soname="libcudart.so.12")
OLD = environment("export LD_LIBRARY_PATH=/opt/old\n")
FIRST = environment("export PATH=/opt/venv/bin:$PATH\n")


def moved(files: Files, to: str) -> Files:
    return {path.replace(SITE, to, 1): content for path, content in files.items()}


def of(part: str, files: Files) -> Files:
    return {path: content for path, content in files.items() if part in path}


def but(part: str, files: Files) -> Files:
    return {path: content for path, content in files.items() if part not in path}


def plugin(version: str) -> Files:
    plugin = distribution("jax-cuda12-plugin", version, SITE, {"jax_cuda12_plugin/cuda_plugin_extension.so": library()})
    pjrt = {"jax_plugins/xla_cuda12/xla_cuda_plugin.so": library(), "jax_plugins/xla_cuda12/__init__.py": ""}
    return {**plugin, **distribution("jax-cuda12-pjrt", version, SITE, pjrt)}


def damage(library: str, content: bytes) -> Files:
    files = torch()
    name = next(path for path in files if path.endswith(library))
    return {**files, name: content}


@pytest.mark.parametrize(
    "library",
    ["libtorch_cuda.so", "libtorch_global_deps.so", "libcudnn_ops.so.9", "libcudart.so.12", "libnvJitLink.so.12"],
)
@pytest.mark.parametrize("kept", [0, 3, 40, 300, -1])
def test_a_required_library_that_is_empty_or_truncated_is_damaged(tmp_path: Path, library: str, kept: int) -> None:
    whole = next(content for path, content in torch().items() if path.endswith(library))
    found = audit(tmp_path, damage(library, whole[:kept]))
    assert found.verdict.value == "gpu-broken"
    message = codes(found)["damaged-library"]
    assert library in message
    assert ("is empty" if kept == 0 else "is truncated") in message


@pytest.mark.parametrize(
    ("closed", "mode", "verdict"),
    [
        ("nvidia", 700, "gpu-broken"),
        ("nvidia/cudnn/lib", 700, "gpu-broken"),
        ("torch/lib", 700, "gpu-broken"),
        ("torch/lib/libtorch_cuda.so", 600, "gpu-broken"),
        ("nvidia/cuda_runtime/lib/libcudart.so.12", 640, "gpu-broken"),
        ("torch/__init__.py", 600, "gpu-broken"),
        ("torch/lib/libtorch_cuda.so", 644, "gpu-ready"),
        ("torch", 711, "gpu-ready"),
        ("numpy", 700, "gpu-ready"),
    ],
)
def test_a_file_that_only_root_can_read_is_found(tmp_path: Path, closed: str, mode: int, verdict: str) -> None:
    for part in (python_files(), torch(), {f"{SITE}/numpy/__init__.py": ""}):
        fill(tmp_path, part)
    squash(tmp_path, image := tmp_path.with_suffix(".sqfs"), "-p", f"{SITE}/{closed} m {mode} 0 0", "-all-root")
    found = audit_image(image, TargetMachine())
    assert found.verdict.value == verdict
    if verdict == "gpu-broken":
        assert f"/{SITE}/{closed}" in codes(found)["library-not-readable"]


@pytest.mark.parametrize("where", ["usr/local/bin/python", "opt/bin/python"])
@pytest.mark.parametrize("gpu", [True, False])
def test_a_python_that_is_a_script_is_the_one_that_it_starts(tmp_path: Path, where: str, gpu: bool) -> None:
    other = {**venv("opt/env", "3.11"), **moved(torch() if gpu else CPU, "opt/env/lib/python3.11/site-packages")}
    path = environment("export PATH=/opt/bin:/usr/local/bin:/usr/bin:/bin\n")
    script = {where: '#!/bin/sh\nexport OMP_NUM_THREADS=1\nexec /opt/env/bin/python "$@"\n'}
    files = {**(CPU if gpu else torch()), **other, **path, **script}
    found = audit(tmp_path, files)
    assert found.verdict.value == ("gpu-ready" if gpu else "cpu-only")


# Each was labelled before it was tried, from what ld.so and Python do (ld.so(8), docs.python.org/3/library/site.html).
LAYOUTS: dict[str, tuple[str, Files]] = {
    "cudart deleted": ("gpu-broken", torch(without="libcudart.so.12")),
    "cusparse deleted": ("gpu-broken", torch(without="libcusparse.so.12")),
    "nvJitLink deleted": ("gpu-broken", torch(without="libnvJitLink.so.12")),
    "libtorch_cuda.so deleted": ("gpu-broken", torch(without="libtorch_cuda.so")),
    "libc10_cuda.so deleted": ("gpu-broken", torch(without="libc10_cuda.so")),
    "a part of cuDNN deleted": ("gpu-broken", torch(without="libcudnn_graph.so.9")),
    "nvJitLink of an older CUDA": (
        "gpu-broken", {**torch(), f"{NVIDIA}/nvjitlink/lib/libnvJitLink.so.12": nvjitlink("12_1 12_3")},
    ),
    "an older nvJitLink by LD_LIBRARY_PATH, before DT_RUNPATH": (
        "gpu-broken",
        {**torch(), "opt/old/libnvJitLink.so.12": nvjitlink("12_1"), **OLD},
    ),
    "an older cuDNN of another name by LD_LIBRARY_PATH": (
        "gpu-ready",
        {**torch(), "opt/old/libcudnn.so.8": library(soname="libcudnn.so.8"),
         **OLD},
    ),
    "LD_LIBRARY_PATH of no directory": ("gpu-ready", {**torch(), **environment("export LD_LIBRARY_PATH=/opt/none\n")}),
    "LD_LIBRARY_PATH unset": ("gpu-ready", {**torch(), **environment("unset LD_LIBRARY_PATH\n")}),
    "LD_PRELOAD of no file": ("gpu-ready", {**torch(), **environment("export LD_PRELOAD=/opt/none.so\n")}),
    "cudart only in the toolkit": (
        "gpu-broken", {**torch(without="libcudart.so.12"), "usr/local/cuda/lib64/libcudart.so.12": CUDART},
    ),
    "cudart in the toolkit by LD_LIBRARY_PATH": (
        "gpu-ready",
        {**torch(without="libcudart.so.12"), "usr/local/cuda/lib64/libcudart.so.12": CUDART,
         **environment("export LD_LIBRARY_PATH=/usr/local/cuda/lib64\n")},
    ),
    "cudart in the system": (
        "gpu-ready", {**torch(without="libcudart.so.12"), "usr/lib/x86_64-linux-gnu/libcudart.so.12": CUDART},
    ),
    "cudart is a symlink to nothing": (
        "gpu-broken",
        {**torch(without="libcudart.so.12"), f"{NVIDIA}/cuda_runtime/lib/libcudart.so.12": "-> libcudart.so.12.4.127"},
    ),
    "cudart is a symlink to its version": (
        "gpu-ready",
        {**torch(without="libcudart.so.12"), f"{NVIDIA}/cuda_runtime/lib/libcudart.so.12": "-> libcudart.so.12.4.127",
         f"{NVIDIA}/cuda_runtime/lib/libcudart.so.12.4.127": CUDART},
    ),
    "CPU build by PYTHONPATH before the GPU build": (
        "cpu-only", {**torch(), **moved(CPU, "opt/cpu"), **environment("export PYTHONPATH=/opt/cpu\n")},
    ),
    "GPU build by PYTHONPATH before the CPU build": (
        "gpu-ready", {**CPU, **moved(torch(), "opt/gpu"), **environment("export PYTHONPATH=/opt/gpu\n")},
    ),
    "a CPU environment first on PATH": (
        "cpu-only", {**torch(), **venv("opt/venv"), **moved(CPU, VENV), **FIRST},
    ),
    "a GPU environment first on PATH": (
        "gpu-ready", {**CPU, **venv("opt/venv"), **moved(torch(), VENV), **FIRST},
    ),
    "a GPU environment off PATH": ("cpu-only", {**CPU, **venv("opt/venv"), **moved(torch(), VENV)}),
    "CPU build beside NVIDIA's wheels": ("cpu-only", {**of("/nvidia", torch()), **CPU}),
    "files of a CPU build over those of a GPU build": (
        "cpu-only", {**torch(), f"{SITE}/torch/version.py": "__version__ = '2.4.0+cpu'\ncuda = None\n"},
    ),
    "only the metadata is left": ("gpu-broken", but("/torch/", torch())),
    "without metadata": ("gpu-ready", but("torch-2.5.1.dist-info", torch())),
    "metadata of an older release beside": (
        "gpu-ready", {**torch(), f"{SITE}/torch-2.4.0.dist-info/METADATA": "Name: torch\nVersion: 2.4.0\n"},
    ),
    "by a .pth file": ("gpu-ready", {**moved(torch(), "opt/extra"), f"{SITE}/extra.pth": "/opt/extra\n"}),
    "for another Python": ("no-framework", moved(torch(), SITE.replace("3.11", "3.9"))),
    "with numpy 2": ("gpu-ready", {**torch(), **distribution("numpy", "2.1.0", SITE)}),
    "CUDA_VISIBLE_DEVICES empty": ("gpu-broken", {**torch(), **environment("export CUDA_VISIBLE_DEVICES=\n")}),
    "CUDA_VISIBLE_DEVICES=-1": ("gpu-broken", {**torch(), **environment("export CUDA_VISIBLE_DEVICES=-1\n")}),
    "JAX without a plugin": ("cpu-only", jax()),
    "JAX with a plugin of another release": ("gpu-broken", jax(extra=plugin("0.5.0"))),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_gets_its_verdict(tmp_path: Path, name: str) -> None:
    verdict, files = LAYOUTS[name]
    found = audit(tmp_path, files)
    assert found.verdict.value == verdict, found.findings
