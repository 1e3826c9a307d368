"""Packages that must fit the framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu import small_images
from tests.gpu.judged import GPU, audit, codes, dist, framework
from tests.inventory.making import distribution
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "version", "companion", "companion_version", "code", "verdict"),
    [
        ("torch", "2.5.1", "torchvision", "0.19.1", "companion-out-of-step", "gpu-broken"),
        ("torch", "2.5.1", "torchvision", "0.20.1", None, "gpu-ready"),
        ("torch", "1.13.1", "torchaudio", "2.11.0", "companion-out-of-step", "gpu-broken"),
        ("tensorflow", "2.15.1", "keras", "3.4.1", "incompatible-versions", "gpu-broken"),
        ("tensorflow", "2.15.1", "keras", "2.14.0", "companion-out-of-step", "gpu-ready"),
        ("tensorflow-gpu", "2.1.0", "keras", "2.4.3", "incompatible-versions", "gpu-broken"),
        ("tensorflow-gpu", "2.1.0", "keras", "2.3.1", None, "gpu-ready"),
        ("tensorflow", "2.14.0", "numpy", "2.2.6", "incompatible-versions", "gpu-broken"),
        ("tensorflow", "2.18.1", "numpy", "2.0.2", None, "gpu-ready"),
        ("onnxruntime-gpu", "1.18.0", "numpy", "2.2.6", "incompatible-versions", "gpu-broken"),
        ("onnxruntime-gpu", "1.19.0", "numpy", "2.2.6", None, "gpu-ready"),
        ("tensorflow", "2.15.0+nv24.3", "keras", "2.15.0", None, "gpu-ready"),
    ],
)
def test_companions(
    name: str, version: str, companion: str, companion_version: str, code: str | None, verdict: str
) -> None:
    found = audit(framework(name, version, GPU, dist(companion, companion_version)))
    assert codes(found) & {"companion-out-of-step", "incompatible-versions"} == ({code} if code else set())
    assert found.verdict.value == verdict


@pytest.mark.parametrize(("keras", "found"), [("3.4.1", {"fails-in-use"}), ("2.15.0", set())])
def test_package_that_imports_and_fails_in_use_is_a_warning(keras: str, found: set[str]) -> None:
    version = "2.18.1" if keras.startswith("3") else "2.15.1"
    others = (dist("keras", keras), dist("keras-bert", "0.89.0"))
    judged = audit(framework("tensorflow", version, GPU, *others), framework("torch", "2.5.1", GPU, *others))
    assert codes(judged) & {"fails-in-use"} == found
    assert codes(judged, "error") == set()
    assert len([finding for finding in judged.findings if finding.code == "fails-in-use"]) == len(found)


def test_a_jax_plugin_of_another_version_is_ignored_by_jax() -> None:
    parts = (dist("jaxlib", "0.6.2"), dist("jax-cuda12-plugin", "0.6.0"), dist("jax-cuda12-pjrt", "0.6.2"))
    found = audit(framework("jax", "0.6.2", GPU, *parts))
    assert codes(found, "error") == {"plugin-out-of-step"}
    same = (dist("jaxlib", "0.6.2"), dist("jax-cuda12-plugin", "0.6.2"), dist("jax-cuda12-pjrt", "0.6.2"))
    assert audit(framework("jax", "0.6.2", GPU, *same)).verdict is Verdict.GPU_READY


@pytest.mark.parametrize(
    ("name", "requires", "torch_version", "broken"),
    [
        ("vllm", "torch==2.6.0", "2.5.1", True),
        ("vllm", "torch==2.5.1", "2.5.1", False),
        ("xformers", "torch==2.4.*", "2.5.1", True),
        ("xformers", "torch>=2.4", "2.5.1", False),
        ("vllm", 'torch==2.6.0; extra == "new"', "2.5.1", False),
        ("vllm", "torch==2.6.0", "2.6.0a0+ecf3bae40a.nv25.1", False),
        ("vllm", 'torch==2.6.0; platform_machine == "s390x"', "2.5.1", False),
        ("vllm", 'torch==2.6.0; sys_platform == "linux" and python_version >= "3.10"', "2.5.1", True),
        ("vllm", 'torch==2.6.0; no_such_variable == "1"', "2.5.1", False),
    ],
)
def test_a_package_that_requires_another_torch(
    tmp_path: Path, name: str, requires: str, torch_version: str, broken: bool
) -> None:
    other = distribution(name, "1.0", small_images.SITE, extra=f"Requires-Dist: {requires}\n")
    found = small_images.audit(tmp_path, small_images.torch(torch_version), other)
    assert ("companion-out-of-step" in small_images.codes(found)) is broken


@pytest.mark.parametrize(
    ("tag", "requires", "torch_version", "broken"),
    [
        # As xformers 0.0.35, torch-tensorrt 2.14.0 and bitsandbytes 0.50.2 have them.
        ("py39-none-manylinux_2_28_x86_64", "torch>=2.10", "2.5.1", True),
        ("py39-none-manylinux_2_28_x86_64", "torch>=2.10", "2.10.0", False),
        ("py39-none-manylinux_2_28_x86_64", "torch>=2.10", "2.10.0a0+b558c986e8.nv25.11", False),
        ("cp311-cp311-manylinux_2_28_x86_64", "torch<2.15.0,>=2.14.0", "2.15.0", True),
        ("py3-none-manylinux_2_24_x86_64", "torch<3,>=2.4", "2.5.1", False),
        ("py3-none-any", "torch>=2.10", "2.5.1", False),
    ],
)
def test_a_package_that_is_compiled_against_another_torch(
    tmp_path: Path, tag: str, requires: str, torch_version: str, broken: bool
) -> None:
    """Compiled code does not load with an older torch; a package of Python files may work, and torch does anyway."""
    other = distribution("xformers", "0.0.35", small_images.SITE, extra=f"Requires-Dist: {requires}\n")
    other[f"{small_images.SITE}/xformers-0.0.35.dist-info/WHEEL"] = f"Wheel-Version: 1.0\nTag: {tag}\n"
    found = small_images.audit(tmp_path, small_images.torch(torch_version), other)
    assert ("companion-out-of-step" in small_images.codes(found)) is broken


@pytest.mark.parametrize(("version", "told"), [("1.13.1", True), ("2.2.2", True), ("2.3.0", False)])
def test_numpy_2_under_a_torch_that_is_compiled_for_numpy_1(tmp_path: Path, version: str, told: bool) -> None:
    """Only from_numpy fails: the GPU computes."""
    found = small_images.audit(tmp_path, small_images.torch(version), distribution("numpy", "2.2.6", small_images.SITE))
    assert found.verdict.value == "gpu-ready"
    severities = [one.severity.value for one in found.findings if one.code == "incompatible-versions"]
    assert severities == ["warning"] * told


@pytest.mark.parametrize(("version", "broken"), [("0.4.25", True), ("0.4.26", False)])
def test_numpy_2_under_a_jax_that_is_compiled_for_numpy_1(tmp_path: Path, version: str, broken: bool) -> None:
    found = small_images.audit(
        tmp_path, small_images.jax(version, version), distribution("numpy", "2.2.6", small_images.SITE)
    )
    assert ("incompatible-versions" in small_images.codes(found)) is broken
