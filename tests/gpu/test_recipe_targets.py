"""The machines of a recipe's `[target]`: its base is judged before anything is pulled, its image for each of them."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.gpu.targets import judge_packages, judge_target, machines
from toolkit.recipes.bases import bases_in
from toolkit.recipes.model import Base, Bootstrap, Recipe, Target
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.paths import shipped

BASES = bases_in(shipped("defs"))


def recipe(base: str, *gpus: str, driver: str | None = None, architecture: str | None = None) -> Recipe:
    return Recipe(
        "mine",
        Path("defs/mine.toml"),
        BASES[base],
        target=Target(gpus, driver, (architecture,) if architecture else ()),
    )


def test_base_that_serves_all_machines_passes() -> None:
    assert judge_target(recipe("pytorch-2.10-cuda12.8", "V100", "B200", driver="570.26"), BASES.values()) == ()


@pytest.mark.parametrize(
    ("base", "gpus", "driver", "reason", "instead"),
    [
        ("pytorch-2.14-cuda13.0", ["V100"], None, "CUDA 13 dropped", 'base = "pytorch-2.13-cuda12.6"'),
        ("pytorch-2.14-cuda13.0", ["H100"], "535.104.05", "needs NVIDIA driver 580", 'base = "pytorch-2.13-cuda12.6"'),
        ("tensorflow-2.1", ["V100", "A100"], None, "no code for A100", 'base = "tensorflow-2.15"'),
        ("pytorch-2.6-cuda12.4", ["MI300X"], None, "it is for NVIDIA GPUs", 'base = "rocm-10.0-pytorch-2.13"'),
        ("pytorch-2.13-cuda12.6", ["V100"], "590.44.01", "driver 580 is the last branch for Volta", "--why"),
    ],
)
def test_base_that_does_not_serve_is_refused_with_one_that_does(
    base: str, gpus: list[str], driver: str | None, reason: str, instead: str
) -> None:
    with pytest.raises(CheckFailed, match=reason) as caught:
        judge_target(recipe(base, *gpus, driver=driver), BASES.values())
    assert caught.value.code == "base-does-not-fit"
    assert instead in (caught.value.fix or "")


def test_unrecorded_fact_is_a_note() -> None:
    found = judge_target(recipe("ngc-pytorch-25.06", "H100"), BASES.values())
    assert [finding.code for finding in found] == ["base-fit-unknown"]


def test_image_of_a_user_is_left_to_the_audit() -> None:
    own = replace(recipe("debian-12", "V100"), base=Base("own", Bootstrap.LOCALIMAGE, "/x/own.sif"))
    assert judge_target(own, BASES.values()) == ()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Target(("V1000",)), "does not know the GPU 'V1000'"),
        (Target(("A100,B200",)), "names several GPUs"),
        (Target(driver="new"), "not an NVIDIA driver version"),
    ],
)
def test_target_that_ctk_does_not_know_names_the_file(target: Target, message: str) -> None:
    with pytest.raises(WrongInput, match=message) as caught:
        judge_target(replace(recipe("debian-12"), target=target), BASES.values())
    assert "defs/mine.toml: [target]: " in caught.value.message


def test_base_must_serve_the_architecture_that_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert judge_target(recipe("cuda-12.8-ubuntu24.04", architecture="aarch64"), BASES.values()) == ()
    with pytest.raises(CheckFailed, match=r"pytorch-2\.6 does not serve aarch64: it is for x86_64") as caught:
        judge_target(recipe("pytorch-2.6", architecture="aarch64"), BASES.values())
    assert 'base = "ngc-pytorch' in str(caught.value.fix)
    both = replace(recipe("pytorch-2.6"), target=Target(architectures=("aarch64", "x86_64")))
    assert judge_target(both, BASES.values()) == (), "this host's counts"


def test_gpu_beside_an_arm_processor_needs_its_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(WrongInput, match="names GH200, which needs an image for aarch64") as caught:
        judge_target(recipe("cuda-12.8-ubuntu24.04", "GH200"), BASES.values())
    assert caught.value.fix == 'Add arch = "aarch64" to [target].'
    assert judge_target(recipe("cuda-12.8-ubuntu24.04", "GH200", architecture="aarch64"), BASES.values()) == ()


def test_image_for_any_of_several_architectures_is_right() -> None:
    assert [machine.architecture for machine in machines(Target(architectures=("aarch64", "x86_64")))] == [None]


def test_image_is_audited_for_each_gpu() -> None:
    found = machines(Target(("V100", "7.5"), "535.104.05", ("aarch64",)))
    assert [(machine.gpu, machine.capability) for machine in found] == [("V100", (7, 0)), ("7.5", (7, 5))]
    assert {(machine.driver, machine.architecture) for machine in found} == {("535.104.05", "aarch64")}
    assert [machine.gpu for machine in machines(Target())] == [None]


@pytest.mark.parametrize(
    ("gpu", "driver", "package", "version", "message"),
    [
        ("V100", None, "nvidia-cudnn-cu12", "9.28.0.42", "does not serve V100"),
        ("P100", None, "nvidia-cudnn-cu12", "9.11.0", "cuDNN 9.11 dropped"),
        ("V100", None, "nvidia-cuda-runtime", "13.0.96", "CUDA 13 dropped"),
        ("H100", "535.104.05", "nvidia-cuda-runtime", "13.0.96", "needs NVIDIA driver 580"),
        ("A100", "470.57.02", "nvidia-cuda-runtime-cu12", "12.6.77", "needs NVIDIA driver 525.60.13"),
    ],
)
def test_wheels_that_dropped_the_machine_are_refused(
    gpu: str, driver: str | None, package: str, version: str, message: str
) -> None:
    with pytest.raises(CheckFailed, match=message) as caught:
        judge_packages(recipe("python-3.12", gpu, driver=driver), {"numpy": "2.0", package: version})
    assert caught.value.code == "packages-do-not-fit"


def test_wheels_that_serve_the_machine_pass() -> None:
    wheels = {"nvidia-cudnn-cu12": "9.10.2.21", "nvidia-cuda-runtime-cu12": "12.6.77"}
    judge_packages(recipe("python-3.12", "P100", "H100", driver="525.60.13"), wheels)
    judge_packages(recipe("python-3.12", "A100"), {"nvidia-cudnn-cu12": "9.28.0.42"})
    judge_packages(recipe("python-3.12"), {"nvidia-cudnn-cu12": "9.28.0.42"})
