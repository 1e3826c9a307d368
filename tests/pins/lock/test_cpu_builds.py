"""Frameworks without GPU code that a lock would add."""

from __future__ import annotations

import pytest

from toolkit.inventory.contents.model import Distribution
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.lock.cpu_builds import cpu_builds
from toolkit.pins.lock.model import LockedPackage


def found(*lines: str, base: tuple[str, ...] = (), architecture: str = "x86_64") -> list[str]:
    packages = [LockedPackage(*line.split("=="), None) for line in lines]
    installed = {name: Distribution(name, "1", "", "") for name in base}
    target = PythonTarget("3.12", installed, architecture=architecture)
    return [problem for problem, fix in cpu_builds(packages, target, knowledge()) if fix]


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
    assert found("torch==2.11.0", "nvidia-cudnn-cu13==9.19.0.56", architecture="aarch64") == []
    assert found("torch==2.8.0", base=("nvidia-cudnn-cu12",), architecture="aarch64") == []
    assert found("torch==2.8.0+cu128", architecture="aarch64") == [], "it contains them"
    assert "the CPU only" in found("torch==2.8.0+cpu", architecture="aarch64")[0]


@pytest.mark.parametrize(("version", "advice"), [("2.5.1", "request that, or 2.7"), ("2.10.0", "For 2.10.0 name the")])
def test_a_wheel_for_arm_without_gpu_code_is_refused_with_the_index_that_has_it(version: str, advice: str) -> None:
    package, target = LockedPackage("torch", version, None), PythonTarget("3.12", {}, architecture="aarch64")
    ((_, fix),) = cpu_builds([package], target, knowledge())
    assert advice in fix
    assert 'url = "https://download.pytorch.org/whl/cu128"' in fix
