"""What a lock is made from, and what cannot be locked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.python_targets import TENSORFLOW, TORCH, distribution, target
from tests.pins.small_index import serve_index
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.locking import check_requirements, contradictions, input_hash, make_lock
from toolkit.recipes.model import Base, Recipe, Target
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAMEWORKS = {
    "torch": {"2.9.1": [], "2.11.0": ["nvidia-cudnn-cu13"]},
    "nvidia-cudnn-cu13": {"9.19": []},
    "nvidia-nccl-cu12": {"2.28": []},
    "xgboost": {"3.1": ["nvidia-nccl-cu12"]},
    "tensorflow": {"2.21.0": []},
    "tensorflow-cpu": {"2.21.0": []},
    "keras": {"2.15.0": [], "3.4.1": []},
    "keras-bert": {"0.89.0": ["keras"]},
}
GH200, V100 = Target(("GH200",), None, ("aarch64",)), Target(("V100",))


def recipe(*packages: str, base: Base | None = None) -> Recipe:
    return Recipe("x", Path("x.toml"), base or Base("b", "docker", "a/b:1"), packages=packages)


def test_the_input_of_a_lock_is_what_is_asked_in_any_order_and_spelling() -> None:
    one = input_hash(recipe("Timm", "scikit_learn >= 1"), None, None)
    assert one == input_hash(recipe("scikit-learn>=1", "timm"), None, None)
    assert one != input_hash(recipe("scikit-learn>=1"), None, None)
    assert one != input_hash(recipe("Timm", "scikit_learn >= 1"), None, "2024-01-01")
    assert one != input_hash(recipe("timm", "scikit-learn>=1", base=Base("b", "docker", "a/b:2")), None, None)


def test_input_hash_uses_content_of_local_base_not_its_path() -> None:
    here, there = (Base("b", "localimage", path) for path in ("/here/x.sif", "/there/y.sif"))
    assert input_hash(recipe(base=here), "sha256:1", None) == input_hash(recipe(base=there), "sha256:1", None)
    assert input_hash(recipe(base=here), "sha256:1", None) != input_hash(recipe(base=here), "sha256:2", None)


@pytest.mark.parametrize("line", ["x @ git+https://example.org/x.git", "x @ file:///tmp/x.whl", "x @ ./x.whl"])
def test_unlockable_requirement_is_refused_with_fix(line: str) -> None:
    with pytest.raises(WrongInput) as caught:
        check_requirements(recipe(line))
    assert caught.value.fix is not None


def test_an_address_with_a_file_behind_it_can_be_locked() -> None:
    assert check_requirements(recipe("x @ https://example.org/x-1.zip")) == ("x @ https://example.org/x-1.zip",)


def test_base_that_is_recorded_less_exactly_is_not_contradicted() -> None:
    said = Base("b", "docker", "a/b", framework="tensorflow", framework_version="2.15")
    assert contradictions(said, TENSORFLOW) == ()
    assert contradictions(replace(said, framework="tensorflow-gpu"), TENSORFLOW) == (), "a variant of the framework"
    assert contradictions(replace(said, framework_version="2.1"), TENSORFLOW) == (
        "bases.toml says tensorflow 2.1, the image has 2.15.1",
    )


def test_base_that_contradicts_its_record_is_reported() -> None:
    said = Base("b", "docker", "a/b", python="3.11", framework="tensorflow", framework_version="2.15.1")
    assert contradictions(said, TENSORFLOW) == ()
    assert contradictions(said, TORCH) == ("bases.toml says tensorflow 2.15.1, the image has none",)
    assert len(contradictions(replace(said, python="3.1", framework_version="2.15.0"), TENSORFLOW)) == 2


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uv]:
    with serve_index(tmp_path_factory.mktemp("index"), FRAMEWORKS) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", address)
        yield open_uv(tmp_path_factory.mktemp("area"))


def notes(uv: Uv, asked: Recipe, architecture: str) -> str:
    """The notes of the lock of a recipe over a plain base."""
    plain = replace(target(distribution("pip", "24.2")), architecture=architecture)
    return " ".join(make_lock(uv, asked, BaseFacts(asked.base, plain, "sha256:0")).notes)


@pytest.mark.index
def test_cpu_build_for_arm_is_refused_for_a_gpu_and_noted_for_none(uv: Uv) -> None:
    older = recipe("torch<2.10", "xgboost")
    with pytest.raises(CheckFailed, match=r"torch 2\.9\.1 is a build for the CPU only on aarch64") as caught:
        notes(uv, replace(older, target=GH200), "aarch64")
    assert caught.value.code == "cpu-only-wheel"
    noted = notes(uv, older, "aarch64")
    assert "torch 2.9.1 is a build for the CPU only on aarch64" in noted
    assert "PyPI has torch with GPU code for aarch64 since 2.11" in noted
    assert "the CPU" not in notes(uv, replace(older, verdict=Verdict.CPU_ONLY), "aarch64")
    assert "the CPU" not in notes(uv, older, "x86_64")
    assert "the CPU" not in notes(uv, replace(recipe("torch"), target=GH200), "aarch64")


@pytest.mark.index
def test_tensorflow_without_cuda_is_refused_where_nothing_else_can_bring_it(uv: Uv) -> None:
    plain = replace(recipe("tensorflow", base=Base("p", "docker", "a/b:1", source="its page")), target=V100)
    with pytest.raises(CheckFailed, match=r"computes on the CPU without the libraries of CUDA") as caught:
        notes(uv, plain, "x86_64")
    assert "tensorflow[and-cuda]==2.21.0" in str(caught.value.fix)
    with_cuda = replace(plain, base=replace(plain.base, cuda="12.5"))
    unknown = replace(plain, base=replace(plain.base, source=None))
    installed = (replace(plain, post="dpkg -i cuda.deb"), replace(plain, apt=("nvidia-cuda-toolkit",)))
    for served in (with_cuda, unknown, *installed, replace(plain, target=Target())):
        assert "CPU" not in notes(uv, served, "x86_64")


@pytest.mark.index
def test_framework_that_reads_data_for_another_one_on_the_gpu_is_noted(uv: Uv) -> None:
    noted = notes(uv, replace(recipe("torch", "tensorflow-cpu"), target=V100), "x86_64")
    assert "tensorflow-cpu 2.21.0 is TensorFlow for the CPU only: only PyTorch computes on the GPU" in noted
    with pytest.raises(CheckFailed, match=r"tensorflow-cpu 2\.21\.0 is TensorFlow for the CPU only"):
        notes(uv, replace(recipe("tensorflow-cpu"), target=V100), "x86_64")


@pytest.mark.index
def test_package_that_imports_and_fails_in_use_is_noted(uv: Uv) -> None:
    noted = notes(uv, recipe("keras-bert"), "x86_64")
    assert "keras-bert 0.89.0 can be imported beside keras 3.4.1, but get_model fails" in noted
    assert "Use a base with Keras 2" in noted
    assert "fails" not in notes(uv, recipe("keras-bert", "keras<3"), "x86_64")


def test_lock_that_was_not_judged_for_a_gpu_is_out_of_date_for_one() -> None:
    assert input_hash(recipe("torch"), None, None) != input_hash(replace(recipe("torch"), target=V100), None, None)
