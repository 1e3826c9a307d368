"""Images that look ready and are not: each was called gpu-ready once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.inventory.making import distribution, fill, python_files, variables_after
from tests.real.wheels import elf
from toolkit.gpu.audit import Audit, audit_image
from toolkit.gpu.facts import TargetMachine
from toolkit.gpu.rules.python import serves
from toolkit.inventory.contents.model import Interpreter

if TYPE_CHECKING:
    from pathlib import Path

Files = dict[str, Any]
SITE = "usr/local/lib/python3.11/site-packages"
NVIDIA = f"{SITE}/nvidia"
READY = {"minimum-driver", "gpu-generations", "user-site-enabled"}


def library(*needed: str, runpath: str = "", rpath: str = "", soname: str = "", symbols: str = "") -> bytes:
    return elf(list(needed), runpath or rpath, bool(runpath), "", soname, symbols)


def audit(directory: Path, *parts: Files) -> Audit:
    for part in (python_files(), *parts):
        fill(directory, part)
    return audit_image(directory, TargetMachine())


def codes(found: Audit) -> dict[str, str]:
    return {finding.code: finding.message for finding in found.findings}


def environment(text: str, name: str = "90-environment") -> Files:
    return {f".singularity.d/env/{name}.sh": text}


def torch(version: str = "2.5.1", cudnn: str = "9.1.0.70", extra: str = "", without: str = "") -> Files:
    """A small torch with its CUDA libraries in NVIDIA's wheels."""
    rpath = ":".join(f"$ORIGIN/../../nvidia/{directory}/lib" for directory in ("cudnn", "cusparse", "cuda_runtime"))
    files = {
        "torch/__init__.py": "", "torch/version.py": f"__version__ = '{version}+cu124'\ncuda = '12.4'\n",
        "torch/lib/libtorch_global_deps.so": library("libcudart.so.12", rpath=rpath),
        "torch/lib/libtorch_cuda.so": library(
            "libc10_cuda.so", "libcudnn.so.9", "libcusparse.so.12", rpath=f"{rpath}:$ORIGIN", soname="libtorch_cuda.so"
        ),
        "torch/lib/libc10_cuda.so": library("libcudart.so.12", rpath=rpath, soname="libc10_cuda.so"),
    }  # fmt: skip
    wheel = distribution("torch", version, SITE, files, f"Requires-Dist: nvidia-cudnn-cu12==9.1.0.70\n{extra}")
    parts = [f"nvidia/cudnn/lib/libcudnn{part}.so.9" for part in ("", "_graph", "_ops", "_cnn", "_adv", "_heuristic")]
    parts += ["nvidia/cudnn/lib/libcudnn_engines_runtime_compiled.so.9"]
    link = "$ORIGIN:$ORIGIN/../../nvjitlink/lib"
    made = {
        **wheel,
        **distribution("nvidia-cudnn-cu12", cudnn, SITE, {
            part: library(soname=part.rpartition("/")[2], runpath="$ORIGIN") for part in parts
        }),
        f"{NVIDIA}/cuda_runtime/lib/libcudart.so.12": library(soname="libcudart.so.12"),
        f"{NVIDIA}/cusparse/lib/libcusparse.so.12": library(
            "libnvJitLink.so.12", runpath=link, soname="libcusparse.so.12", symbols="__nvJitLinkComplete_12_4"
        ),
        f"{NVIDIA}/nvjitlink/lib/libnvJitLink.so.12": nvjitlink("12_3 12_4"),
    }  # fmt: skip
    return {path: content for path, content in made.items() if not without or not path.endswith(without)}


def nvjitlink(releases: str) -> bytes:
    return library(
        soname="libnvJitLink.so.12", symbols=" ".join(f"__nvJitLinkComplete_{release}" for release in releases.split())
    )


def jax(jax: str = "0.6.2", jaxlib: str = "0.6.2", extra: Files | None = None) -> Files:
    oldest = f'_minimum_jaxlib_version = "{jax}"\n'
    return {
        **distribution("jax", jax, SITE, {"jax/version.py": oldest}),
        **distribution("jaxlib", jaxlib, SITE),
        **(extra or {}),
    }


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


@pytest.mark.parametrize("command", ["unset A B", "unset -v A; unset B", 'unset "A" B'])
def test_unset_in_a_script(command: str) -> None:
    variables = variables_after("A=1; B=2; C=3", command)
    assert {name: value for name, value in variables.items() if name in "ABC"} == {"C": "3"}


def test_a_torch_of_another_python(tmp_path: Path) -> None:
    tag = {f"{SITE}/torch-2.5.1.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: cp310-cp310-manylinux1_x86_64\n"}
    found = audit(tmp_path, torch(), tag)
    assert found.verdict.value == "gpu-broken"
    assert "is Python 3.11" in codes(found)["framework-of-other-python"]


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("cp311-cp311-linux_x86_64", True), ("cp310-cp310-linux_x86_64", False), ("cp38-abi3-linux_x86_64", True),
        ("cp312-abi3-linux_x86_64", False), ("py3-none-any", True), ("py2.py3-none-any", True),
        ("py2-none-any", True), ("cp311-none-manylinux1_x86_64", True), ("cp312-none-manylinux1_x86_64", False),
        ("cp311-cp311t-linux_x86_64", False), ("what", True),
    ],
)  # fmt: skip
def test_which_python_a_wheel_serves(tag: str, expected: bool) -> None:
    own = Interpreter("/usr/bin/python3.11", "3.11.2", "/usr", "system", ())
    assert serves([tag], own) is expected


@pytest.mark.parametrize("home", ["root", "home/builder"])
@pytest.mark.parametrize(("mode", "broken"), [(0o700, True), (0o750, True), (0o755, False)])
def test_a_python_in_the_home_of_whoever_built_the_image(tmp_path: Path, home: str, mode: int, broken: bool) -> None:
    fill(tmp_path, python_files("3.11", f"{home}/.local/share/uv/python/cpython-3.11"))
    venv = {
        "opt/venv/bin/python3": f"-> /{home}/.local/share/uv/python/cpython-3.11/bin/python3.11",
        "opt/venv/pyvenv.cfg": f"home = /{home}/.local/share/uv/python/cpython-3.11/bin\nversion = 3.11.7\n",
        "opt/venv/lib/python3.11/site-packages/": "",
        **{path.replace("usr/local", "opt/venv"): content for path, content in torch().items()},
        **environment('export PATH="/opt/venv/bin:/usr/bin"\n'),
    }
    fill(tmp_path, venv)
    (tmp_path / home).chmod(mode)
    found = audit_image(tmp_path, TargetMachine())
    assert [framework.facts.name for framework in found.frameworks] == ["torch"]
    assert ("python-not-readable" in codes(found)) is broken


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
