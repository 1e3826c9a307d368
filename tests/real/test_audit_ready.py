"""`ctk audit` on real wheels (reduced, see wheels.py) that look ready and are not, and on kin that are ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, python_files
from tests.real.wheels import Wheelhouse
from toolkit.gpu.audit import Audit, audit_image
from toolkit.gpu.facts import TargetMachine

if TYPE_CHECKING:
    from pathlib import Path

SITE = "usr/local/lib/python3.11/site-packages"


@pytest.fixture(scope="module")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Wheelhouse:
    return Wheelhouse(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Wheelhouse) -> Path:
    """torch 2.5.1 with all that it requires; each test takes away or adds something for itself."""
    root = fill(tmp_path_factory.mktemp("torch"), python_files())
    wheelhouse.install(root / SITE, "torch==2.5.1", dependencies=True)
    return root


def audit(root: Path) -> Audit:
    return audit_image(root, TargetMachine())


def messages(found: Audit) -> dict[str, str]:
    return {finding.code: finding.message for finding in found.findings}


def installed(root: Path, wheelhouse: Wheelhouse, *groups: tuple[str, ...], dependencies: bool = True) -> Audit:
    fill(root, python_files())
    for number, group in enumerate(groups):
        wheelhouse.install(root / SITE, *group, dependencies=dependencies and number == 0)
    return audit(root)


def test_tensorflow_2_16_1_does_not_find_the_wheels_that_it_requires(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    """TensorFlow issue 63362; with the directories in LD_LIBRARY_PATH it does."""
    found = installed(tmp_path, wheelhouse, ("tensorflow[and-cuda]==2.16.1",))
    assert found.verdict.value == "gpu-broken"
    said = messages(found)["cuda-library-off-path"]
    for soname in ("libcublas.so.12", "libcufft.so.11", "libcusolver.so.11", "libcusparse.so.12", "libcudnn.so.8"):
        assert soname in said
    assert "libcudart" not in said
    assert "missing-cuda-library" not in messages(found)
    directories = ":".join(
        f"/{SITE}/nvidia/{directory.name}/lib" for directory in (tmp_path / SITE / "nvidia").iterdir()
    )
    fill(tmp_path, {".singularity.d/env/90-environment.sh": f'export LD_LIBRARY_PATH="{directories}"\n'})
    assert audit(tmp_path).verdict.value == "gpu-ready"


@pytest.mark.parametrize(
    ("without", "code"),
    [
        ("nvidia/nvjitlink/lib/libnvJitLink.so.12", "missing-cuda-library"),
        ("nvidia/cublas/lib/libcublasLt.so.12", "missing-cuda-library"),
        ("nvidia/cudnn/lib/libcudnn_graph.so.9", "missing-cuda-library"),
        ("nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9", "framework-incomplete"),
        ("torch/lib/libc10_cuda.so", "framework-incomplete"),
        ("torch/lib/libtorch_cuda_linalg.so", "framework-incomplete"),
    ],
)
def test_torch_without_one_library(torch: Path, without: str, code: str) -> None:
    library = torch / SITE / without
    library.rename(library.with_name("away"))
    try:
        found = audit(torch)
        assert found.verdict.value == "gpu-broken"
        assert library.name in messages(found)[code]
    finally:
        library.with_name("away").rename(library)
    assert audit(torch).verdict.value == "gpu-ready"


def test_torch_with_an_nvjitlink_of_another_release(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    """That of CUDA 12.3 beside the cuSPARSE of 12.4."""
    both = (("torch==2.5.1",), ("nvidia-nvjitlink-cu12==12.3.101",))
    found = installed(tmp_path, wheelhouse, *both)
    assert found.verdict.value == "gpu-broken"
    assert "_12_4" in messages(found)["cuda-libraries-disagree"]


def test_a_cudnn_older_than_torch_and_jax_were_compiled_with(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    older = (("torch==2.9.1",), ("nvidia-cudnn-cu12==9.3.0.75",))
    assert "compiled with cuDNN 9.10" in messages(installed(tmp_path / "torch", wheelhouse, *older))["cudnn-too-old"]
    older = (("jax[cuda12]==0.6.2",), ("nvidia-cudnn-cu12==9.1.0.70",))
    assert "compiled with cuDNN 9.8" in messages(installed(tmp_path / "jax", wheelhouse, *older))["cudnn-too-old"]


def test_distributions_out_of_step(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    parts = ("jaxlib==0.5.3", "jax-cuda12-plugin==0.5.3", "jax-cuda12-pjrt==0.5.3")
    found = installed(tmp_path / "jaxlib", wheelhouse, ("jax==0.6.2", *parts), dependencies=False)
    assert "jax 0.6.2 refuses jaxlib 0.5.3" in messages(found)["companion-out-of-step"]
    numpy = installed(tmp_path / "numpy", wheelhouse, ("jax==0.4.25", "jaxlib==0.4.25"), ("numpy==2.2.6",))
    assert "segmentation fault" in messages(numpy)["incompatible-versions"]


@pytest.mark.parametrize("other", ["xformers==0.0.28", "xformers==0.0.35", "vllm==0.6.3"])
def test_a_package_that_requires_another_torch(tmp_path: Path, wheelhouse: Wheelhouse, other: str) -> None:
    found = installed(tmp_path, wheelhouse, ("torch==2.5.1",), (other,))
    assert found.verdict.value == "gpu-broken"
    assert f"{other.partition('=')[0]} " in messages(found)["companion-out-of-step"]


def test_a_torch_for_python_3_10_under_3_11(tmp_path: Path, wheelhouse: Wheelhouse) -> None:
    fill(tmp_path, python_files())
    wheelhouse.install(tmp_path / SITE, "torch==2.5.1", python="3.10")
    found = audit(tmp_path)
    assert found.verdict.value == "gpu-broken"
    assert "cp310-cp310" in messages(found)["framework-of-other-python"]
