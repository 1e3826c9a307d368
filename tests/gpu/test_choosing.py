"""Which bases serve a machine: each rule alone, and the order of those that do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolkit.gpu.choosing import (
    BaseRequest,
    choose,
    exclusions,
    implied_architectures,
    parse_framework,
    refuse_contradiction,
    served_range,
)
from toolkit.gpu.compatibility import find_gpu
from toolkit.recipes.model import Base, Bootstrap, Evidence
from toolkit.support.errors import WrongInput

TORCH = Base(
    name="torch",
    bootstrap=Bootstrap.DOCKER,
    reference="pytorch/pytorch:2.10.0",
    framework="torch",
    framework_version="2.10.0",
    python="3.12",
    cuda="12.8",
    cudnn="9.10.2",
    driver="525.60.13",
    architectures=("x86_64",),
    code=("sm_70", "sm_75", "sm_80", "sm_90", "sm_100", "sm_120"),
    evidence=Evidence.CONFIRMED,
)


def request(gpu: str = "", **values: object) -> BaseRequest:
    gpus = tuple(map(find_gpu, gpu.split()))
    return replace(BaseRequest(gpus=gpus), **values)  # type: ignore[arg-type]


def rules(base: Base, wanted: BaseRequest) -> list[str]:
    return [found.rule for found in exclusions(base, wanted)]


@pytest.mark.parametrize(
    ("change", "wanted", "rule"),
    [
        ({}, request("V100 H100 B200", driver="570.26"), None),
        ({}, request("P100"), "no-code"),
        ({}, request("Orin"), "architecture"),
        ({"architectures": ("aarch64",)}, request("Orin"), "jetson"),
        ({}, request("V100", driver="580.65.06"), None),
        ({}, request("V100", driver="590.44.01"), "driver"),
        ({"code": ("sm_37",), "cuda": "11.8", "cudnn": "8", "driver": None}, request("K80", driver="470.57.02"), None),
        (
            {"code": ("sm_37",), "cuda": "11.8", "cudnn": "8", "driver": None},
            request("K80", driver="535.104.05"),
            "driver",
        ),
        ({}, request("B200", driver="570.25"), "driver"),
        ({"code": ("sm_80",), "cuda": "11.0", "cudnn": "8"}, request("RTX3090 L40S"), None),
        ({"code": (), "cuda": "12.3"}, request("B200"), "older-than-gpu"),
        ({"code": (), "cuda": "11.8"}, request("B200"), "older-than-gpu"),
        ({"code": (), "runs_on": ("9.0",)}, request("H100"), None),
        ({"code": (), "runs_on": ("9.0",)}, request("A100"), "code-unknown"),
        (
            {"framework": "tensorflow", "framework_version": "2.21.0", "code": ("sm_90", "compute_90")},
            request("B200"),
            "ptx-fails",
        ),
        (
            {"framework": "tensorflow", "framework_version": "2.17.0", "code": ("sm_90", "sm_120")},
            request("RTX5090"),
            None,
        ),
        (
            {"framework": "tensorflow", "framework_version": "2.22.0", "code": ("sm_90", "compute_90")},
            request("B200"),
            None,
        ),
        ({"rocm": "7.2", "cuda": None, "driver": None, "code": ()}, request("MI300X MI250X MI210"), None),
        ({"rocm": "5.7", "cuda": None, "driver": None, "code": ()}, request("MI300X"), "older-than-gpu"),
        ({}, request("MI300X"), "gpu"),
        ({"rocm": "7.2", "cuda": None, "driver": None}, request(driver="535"), "gpu"),
        ({}, request(driver="470.57.02"), "driver"),
        ({"driver": None, "cuda": None}, request(driver="535"), "driver"),
        ({"cuda": "13.0", "cudnn": "9.15.1"}, request("V100"), "dropped"),
        ({"cudnn": "9.20"}, request("V100"), "dropped"),
        ({"cudnn": "9"}, request("V100"), "cudnn-unknown"),
        ({"cudnn": None}, request("V100"), "cudnn-unknown"),
        ({"cudnn": None}, request("A100"), None),
        ({"cudnn": "8"}, request("V100"), None),
        ({"cudnn": None, "cuda": "10.1", "driver": None}, request("V100"), None),
        ({"code": ()}, request("A100"), "code-unknown"),
        ({"code": ("sm_70", "compute_80"), "cuda": "12.3"}, request("A100", driver="535.104.05"), "ptx"),
        ({"code": ("sm_70", "compute_80"), "cuda": "12.3"}, request("A100", driver="545.23.06"), None),
        ({"code": ("sm_70", "compute_80"), "cuda": "12.3"}, request("B200", driver="580"), "older-than-gpu"),
        ({"cuda": "12"}, request("B200"), None),
        ({}, request("B200", driver="535.104.05"), "driver"),
        ({}, request(architectures=("aarch64",)), "architecture"),
        ({"architectures": ()}, request(architectures=("aarch64",)), "architecture"),
        ({}, request(python="3.12"), None),
        ({}, request(python="3.1"), "python"),
        ({}, request(cuda="12"), None),
        ({}, request(cuda="12.4"), "cuda"),
        ({}, request(framework=parse_framework("tensorflow")[0]), "framework"),
        ({}, request(framework=parse_framework("torch")[0], versions=">=2.11"), "framework-version"),
        ({"broken": "wrong cuDNN"}, request(), "broken"),
        ({"broken": "wrong cuDNN"}, request(allow_broken=True), None),
        ({"rocm": "7.2", "cuda": None}, request("A100"), "gpu"),
        ({"framework": None, "cuda": None, "code": ()}, request("V100", driver="535"), None),
    ],
)
def test_base_is_excluded_by_its_rule(change: dict[str, object], wanted: BaseRequest, rule: str | None) -> None:
    found = rules(replace(TORCH, **change), wanted)  # type: ignore[arg-type]
    assert found[:1] == ([rule] if rule else [])


def test_unrecorded_facts_exclude_without_certainty() -> None:
    unknown = replace(TORCH, cudnn=None, architectures=())
    found = list(exclusions(unknown, request("V100", architectures=("aarch64",))))
    assert [(reason.rule, reason.certain) for reason in found] == [("architecture", False), ("cudnn-unknown", False)]


def test_newest_confirmed_base_of_the_framework_itself_comes_first() -> None:
    newer = replace(TORCH, name="newer", framework_version="2.14.0", cuda="13.0", cudnn="9.15")
    newest_cuda = replace(newer, name="newest-cuda", cuda="13.2")
    single = replace(newer, name="single", framework_version="2.15.0", evidence=Evidence.SINGLE)
    vendor = replace(newer, name="vendor", framework_version="2.16.0", family="NGC")
    found = choose([TORCH, vendor, single, newer, newest_cuda], request("H100", driver="580.65.06"))
    assert [base.name for base in found.fitting] == ["newest-cuda", "newer", "torch", "single", "vendor"]


def test_base_for_most_gpu_types_comes_first_if_no_machine_is_named() -> None:
    newer = replace(
        TORCH, name="newer", framework_version="2.14.0", cuda="13.0", cudnn="9.15", code=TORCH.code[1:], driver="580"
    )
    assert [base.name for base in choose([newer, TORCH], BaseRequest()).fitting] == ["torch", "newer"]
    assert [base.name for base in choose([newer, TORCH], request("H100")).fitting] == ["newer", "torch"]


def test_base_for_the_vendor_of_the_gpu_comes_first() -> None:
    plain = replace(TORCH, name="plain", framework=None, cuda=None, code=(), driver=None)
    rocm = replace(TORCH, name="rocm", rocm="7.2", cuda=None, code=(), driver=None)
    assert [base.name for base in choose([TORCH, plain, rocm], request("MI300X")).fitting] == ["rocm", "plain"]
    assert [base.name for base in choose([rocm, plain, TORCH], request()).fitting] == ["torch", "plain", "rocm"]


def test_gpu_range_names_the_oldest_and_the_newest() -> None:
    assert served_range(TORCH) == "V100 to RTX PRO 6000"
    assert served_range(replace(TORCH, code=())) == ""


@pytest.mark.parametrize(
    ("text", "name", "versions"),
    [
        ("torch", "torch", ""),
        ("PyTorch", "torch", ""),
        ("tensorflow-gpu==2.1", "tensorflow", "==2.1.*"),
        ("jax", "jax", ""),
    ],
)
def test_framework_is_known_by_its_names(text: str, name: str, versions: str) -> None:
    framework, found = parse_framework(text)
    assert (framework.name, found) == (name, versions)


@pytest.mark.parametrize("text", ["pytroch", "numpy", "torch>=", "", "torch 2"])
def test_unknown_framework_is_refused(text: str) -> None:
    with pytest.raises(WrongInput):
        parse_framework(text)


@pytest.mark.parametrize(
    ("gpus", "named", "implied"),
    [
        ("MI300A", (), ("x86_64",)), ("GH200 V100", (), ("x86_64", "aarch64")), ("GH200 GB10", (), ("aarch64",)),
        ("V100", (), ()), ("", (), ()),
        ("V100", ("aarch64",), ("aarch64",)), ("GH200", ("x86_64", "aarch64"), ("x86_64", "aarch64")),
    ],
)  # fmt: skip
def test_gpus_of_two_kinds_of_machine_imply_both_architectures(
    gpus: str, named: tuple[str, ...], implied: tuple[str, ...]
) -> None:
    asked = request(gpus, architectures=named)
    refuse_contradiction(asked)
    assert implied_architectures(asked) == implied
    served = replace(TORCH, architectures=("x86_64",))
    rules = [found.rule for found in exclusions(served, asked)]
    assert ("architecture" in rules) is ("aarch64" in implied)


def test_gpu_of_a_request_may_have_its_own_driver() -> None:
    gpus = (find_gpu("V100", "535.104.05"), find_gpu("B200", "580.65.06"))
    assert rules(TORCH, BaseRequest(gpus=gpus, driver="535.104.05")) == []
    assert rules(TORCH, BaseRequest(gpus=gpus[::-1], driver="450.80.02")) == []
    assert rules(TORCH, BaseRequest(gpus=(find_gpu("B200", "535.104.05"),))) == ["driver"]


def test_gpu_beside_x86_processors_contradicts_aarch64() -> None:
    with pytest.raises(WrongInput, match="MI300A exists only beside an x86-64 processor"):
        refuse_contradiction(request("MI300A", architectures=("aarch64",)))


@pytest.mark.parametrize("gpus", ["GH200", "GH200 V100", "gb200"])
def test_gpu_beside_an_arm_processor_contradicts_x86_64(gpus: str) -> None:
    with pytest.raises(WrongInput, match="exists only beside an Arm processor") as caught:
        refuse_contradiction(request(gpus, architectures=("x86_64",)))
    assert caught.value.code == "wrong-architecture"
