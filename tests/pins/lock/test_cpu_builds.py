"""Frameworks without GPU code that a lock would add."""

from __future__ import annotations

import pytest

from toolkit.inventory.contents.model import Distribution
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.lock.cpu_builds import CpuBuild, cpu_builds
from toolkit.pins.lock.model import LockedPackage


def package(line: str) -> LockedPackage:
    """A locked package of "torch==2.11.0", or with what requires it: "nvidia-cudnn-cu13==9.19.0.56 <- torch"."""
    pin, _, by = line.partition(" <- ")
    return LockedPackage(*pin.split("=="), None, required_by=(by or "recipe",))


def builds(
    *lines: str, base: tuple[str, ...] = (), architecture: str = "x86_64", without_cuda: bool = False
) -> list[CpuBuild]:
    installed = {name: Distribution(name, "1", "", "") for name in base}
    target = PythonTarget("3.12", installed, architecture=architecture)
    return list(cpu_builds(map(package, lines), target, knowledge(), without_cuda=without_cuda))


def found(*lines: str, base: tuple[str, ...] = (), architecture: str = "x86_64") -> list[str]:
    return [build.problem for build in builds(*lines, base=base, architecture=architecture) if build.fix]


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        (("torch==2.6.0+cpu",), "torch 2.6.0+cpu is a build for the CPU only"),
        (("tensorflow-cpu==2.15.1",), "tensorflow-cpu 2.15.1 is TensorFlow for the CPU only"),
        (("jax==0.6.2", "jaxlib==0.6.2"), "jax 0.6.2 has no GPU code without jax-cuda*-plugin"),
    ],
)
def test_build_without_gpu_code_is_found(lines: tuple[str, ...], part: str) -> None:
    (problem,) = found(*lines)
    assert part in problem


@pytest.mark.parametrize(
    "lines",
    [
        ("torch==1.12.1",),  # its wheel contains the libraries of CUDA
        ("torch==2.6.0+cu126",),
        ("tensorflow==2.15.1",),
        ("jax==0.6.2", "jax-cuda12-plugin==0.6.2"),
        ("numpy==2.0",),
    ],
)
def test_build_with_gpu_code_is_not(lines: tuple[str, ...]) -> None:
    assert found(*lines) == []


def test_plugin_of_the_base_counts() -> None:
    assert found("jax==0.6.2", base=("jax-cuda12-plugin",)) == []


def test_wheel_for_arm_requires_libraries_if_it_has_gpu_code() -> None:
    assert "torch 2.8.0 is a build for the CPU only on aarch64" in found("torch==2.8.0", architecture="aarch64")[0]
    assert found("torch==2.11.0", "nvidia-cudnn-cu13==9.19.0.56 <- torch", architecture="aarch64") == []
    assert found("torch==2.11.0", "cuda-toolkit==13.0.2 <- torch", architecture="aarch64") == [], "a metapackage"
    assert found("torch==2.8.0", base=("nvidia-cudnn-cu12",), architecture="aarch64") == []
    assert found("torch==2.8.0+cu128", architecture="aarch64") == [], "it contains them"
    assert "the CPU only" in found("torch==2.8.0+cpu", architecture="aarch64")[0]


@pytest.mark.parametrize(
    "other", ["nvidia-nccl-cu12==2.28.3 <- xgboost", "nvidia-cublas-cu12==12.9.1.4", "nvidia-cudnn-cu12==9.1 <- jax"]
)
def test_library_of_nvidia_that_another_package_requires_does_not_count(other: str) -> None:
    assert "torch 2.9.1 is a build for the CPU" in found("torch==2.9.1", other, architecture="aarch64")[0]
    assert found("torch==2.9.1", base=("nvidia-nccl-cu12",), architecture="aarch64")


def test_tensorflow_for_arm_is_for_the_cpu_with_any_extra() -> None:
    libraries = [f"nvidia-{name}-cu12==12.9 <- tensorflow" for name in ("cublas", "cuda-runtime", "cudnn")]
    for version in ("2.16.1", "2.21.0"):
        for more in ([], libraries):
            (build,) = builds(f"tensorflow=={version}", *more, architecture="aarch64")
            assert build.problem == f"tensorflow {version} is a build for the CPU only on aarch64, with any extra"
            assert "`ctk bases --framework tensorflow --arch aarch64`" in build.fix
            assert build.unasked
    assert builds("tensorflow==2.16.1+nv24.8", architecture="aarch64") == [], "NVIDIA's own"


def test_wheel_for_arm_of_a_url_is_judged_only_if_it_is_of_pypi() -> None:
    target = PythonTarget("3.12", {}, architecture="aarch64")
    for host, number in (("example.org", 0), ("files.pythonhosted.org", 1)):
        named = LockedPackage("tensorflow", "2.17.0", None, url=f"https://{host}/tensorflow-2.17.0.whl")
        assert len(list(cpu_builds([named], target, knowledge()))) == number


def test_wheel_for_arm_with_gpu_code_that_requires_no_library_is_not_one_for_the_cpu() -> None:
    assert found("onnxruntime-gpu==1.31.1", "cupy-cuda12x==13.6.0", architecture="aarch64") == []


def test_onnxruntime_for_arm_names_the_versions_that_exist() -> None:
    (build,) = builds("onnxruntime==1.31.1", architecture="aarch64")
    assert "onnxruntime-gpu[cuda,cudnn]>=1.29" in build.fix
    assert not build.unasked


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("tensorflow==2.21.0", "tensorflow[and-cuda]==2.21.0"),
        ("tensorflow==2.13.1", "`ctk bases --framework tensorflow`"),
        ("onnxruntime-gpu==1.31.1", "onnxruntime-gpu[cuda,cudnn]==1.31.1"),
        ("onnxruntime-gpu==1.20.2", "a base with CUDA"),
    ],
)
def test_framework_without_the_libraries_of_cuda_is_found(line: str, fix: str) -> None:
    (build,) = builds(line, "nvidia-nccl-cu12==2.28.3 <- xgboost", without_cuda=True)
    assert "computes on the CPU without the libraries of CUDA" in build.problem
    assert fix in build.fix
    assert builds(line) == [], "the base may have them"
    name = line.partition("==")[0]
    for asked in ("recipe", name):
        libraries = ["nvidia-cublas==1 <- nvidia-cudnn-cu12", f"nvidia-cuda-runtime-cu12==1 <- {asked}"]
        assert builds(line, *libraries, f"nvidia-cudnn-cu12==1 <- {asked}", without_cuda=True) == []
        others = [library.replace(asked, "torch") for library in libraries]
        assert builds(line, *others, "nvidia-cudnn-cu12==1 <- torch", without_cuda=True), "maybe of another CUDA"


@pytest.mark.parametrize("line", ["torch==2.6.0", "cupy-cuda12x==13.6.0", "numpy==2.0"])
def test_framework_that_brings_or_demands_its_libraries_is_not(line: str) -> None:
    assert builds(line, without_cuda=True) == []


@pytest.mark.parametrize(("version", "advice"), [("2.5.1", "request that, or 2.7"), ("2.10.0", "For 2.10.0 name the")])
def test_a_wheel_for_arm_without_gpu_code_is_refused_with_the_index_that_has_it(version: str, advice: str) -> None:
    (build,) = builds(f"torch=={version}", architecture="aarch64")
    assert advice in build.fix
    assert 'url = "https://download.pytorch.org/whl/cu128"' in build.fix


def test_distribution_for_the_cpu_beside_another_framework_with_gpu_code_is_told_apart() -> None:
    assert [build.beside for build in builds("tensorflow-cpu==2.21.0", base=("torch",))] == ["PyTorch"]
    assert [build.beside for build in builds("torch==2.6.0", "onnxruntime==1.31.1")] == ["PyTorch"]
    assert [build.beside for build in builds("tensorflow-cpu==2.21.0", base=("tensorflow",))] == [None]
    assert [build.beside for build in builds("tensorflow-cpu==2.21.0", base=("onnxruntime",))] == [None]
    assert [build.beside for build in builds("tensorflow-cpu==2.21.0", "torch==2.6.0+cpu")] == [None, None]
    assert [build.beside for build in builds("torch==2.6.0+cpu", base=("tensorflow",))] == [None], "not by its name"
