"""The rules of the audit, each on plain values."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from tests.gpu.judged import GPU, PYTHON, TORCH, audit, codes, framework, image, on
from toolkit.gpu import rules
from toolkit.gpu.audit import judge_for
from toolkit.gpu.facts import FrameworkFacts, GpuLibrary, ImageFacts, Loaded
from toolkit.gpu.targets import machines
from toolkit.inventory.knowledge.builds import FrameworkBuild, Want
from toolkit.recipes.model import Target
from toolkit.support.findings import Verdict


def test_verdicts() -> None:
    ready = framework("torch", "2.5.1", TORCH)
    cpu = framework("onnxruntime", "1.20.1", FrameworkBuild("1.20.1", gpu=False))
    lost = Loaded(Want("libcudart.so.12", "x"), None)
    broken = framework("tensorflow", "2.15.1", replace(GPU, cuda="12.2"), lacking=(lost,))
    assert audit(ready).verdict is Verdict.GPU_READY
    assert audit(cpu).verdict is Verdict.CPU_ONLY
    assert audit(ready, cpu).verdict is Verdict.GPU_READY
    assert audit(ready, broken).verdict is Verdict.GPU_BROKEN
    assert audit().verdict is Verdict.NO_FRAMEWORK
    assert [one.verdict for one in audit(ready, broken, cpu).frameworks] == [
        Verdict.GPU_READY, Verdict.GPU_BROKEN, Verdict.CPU_ONLY,
    ]  # fmt: skip


CPU = FrameworkBuild("2.5.1+cpu", gpu=False)
OTHER = replace(PYTHON, path="/opt/venv/bin/python3.11", prefix="/opt/venv", default=False)


def in_another_python(name: str, version: str, build: FrameworkBuild) -> FrameworkFacts:
    return framework(name, version, build, interpreter=OTHER.path, by_default=False)


@pytest.mark.parametrize(
    ("default", "elsewhere", "verdict"),
    [
        (CPU, TORCH, Verdict.CPU_ONLY), (TORCH, CPU, Verdict.GPU_READY),
        (TORCH, replace(TORCH, complete=False), Verdict.GPU_READY), (None, TORCH, Verdict.GPU_READY),
    ],
)  # fmt: skip
def test_verdict_is_that_of_the_default_python(
    default: FrameworkBuild | None, elsewhere: FrameworkBuild, verdict: Verdict
) -> None:
    own = [framework("torch", "2.5.1", default)] if default else []
    found = audit(*own, in_another_python("torch", "2.5.1", elsewhere), inventory=image(interpreters=(PYTHON, OTHER)))
    assert found.verdict is verdict
    assert "framework-not-default" in codes(found, "warning")
    assert len(found.frameworks) == len(own) + 1


def test_verdict_is_that_of_the_python_that_the_image_runs() -> None:
    default = replace(framework("torch", "2.5.1", CPU), by_default=False)
    run = replace(in_another_python("torch", "2.5.1", TORCH), by_default=True)
    found = audit(default, run, inventory=image(interpreters=(PYTHON, OTHER)), program=OTHER.path)
    assert found.verdict is Verdict.GPU_READY
    (told,) = (finding for finding in found.findings if finding.code == "framework-not-default")
    assert told.message.endswith(f"but the image runs {OTHER.path}.")


@pytest.mark.parametrize(
    ("architecture", "target", "verdict"),
    [
        ("x86_64", Target(("GH200",)), Verdict.GPU_BROKEN), ("aarch64", Target(("GH200",)), Verdict.GPU_READY),
        ("x86_64", Target(("GB10",), "580.65.06"), Verdict.GPU_BROKEN),
        ("x86_64", Target(("V100",), None, ("x86_64",)), Verdict.GPU_READY),
        ("aarch64", Target(("V100",), None, ("x86_64",)), Verdict.GPU_BROKEN),
        ("aarch64", Target(("A100",), None, ("aarch64",)), Verdict.GPU_READY),
        ("aarch64", Target((), None, ("x86_64",)), Verdict.GPU_BROKEN),
        ("ppc64le", Target(("V100",), None, ("x86_64",)), Verdict.GPU_BROKEN),
        # A recipe for both has two images, and each meets only its own GPUs.
        ("x86_64", Target(("GH200", "V100"), None, ("x86_64", "aarch64")), Verdict.GPU_READY),
    ],
)  # fmt: skip
def test_image_of_another_processor_than_the_gpu_has(architecture: str, target: Target, verdict: Verdict) -> None:
    build = replace(TORCH, architectures=(*TORCH.architectures, "sm_120"), cuda="12.8")
    facts = ImageFacts(image(architecture=architecture), (framework("torch", "2.9.1", build),), ())
    found = judge_for(facts, *machines(target))
    assert found.verdict is verdict
    assert ("wrong-architecture" in codes(found, "error")) is (verdict is Verdict.GPU_BROKEN)


def test_image_of_another_processor_than_this_host_is_a_warning() -> None:
    facts = ImageFacts(image(architecture="riscv64"), (framework("torch", "2.5.1", TORCH),), ())
    found = judge_for(facts, *machines(Target(driver="580.65.06")))
    assert found.verdict is Verdict.GPU_READY
    assert "wrong-architecture" in codes(found, "warning")


TF = replace(GPU, cuda="12.5", cudnn="9", architectures=("sm_60", "sm_70", "sm_80", "sm_89", "sm_90", "compute_90"))
NGC = replace(TF, architectures=("sm_90", "sm_100", "sm_120"))
CU128 = replace(TORCH, architectures=("sm_90", "sm_100", "sm_120"), cuda="12.8")
CU117 = replace(TORCH, cuda="11.7", architectures=("sm_37",))


@pytest.mark.parametrize(
    ("name", "version", "build", "gpu", "driver", "verdict"),
    [
        ("tensorflow", "2.21.0", TF, "RTX5090", "580.65.06", Verdict.GPU_BROKEN),
        ("tensorflow", "2.20.0", TF, "B200", "580.65.06", Verdict.GPU_BROKEN),
        ("tensorflow", "2.16.2", TF, "RTX5080", "581.29", Verdict.GPU_BROKEN),
        ("tensorflow", "2.21.0", TF, "H100", "580.65.06", Verdict.GPU_READY),
        ("tensorflow", "2.17.0+nv25.2", NGC, "RTX5090", "580.65.06", Verdict.GPU_READY),
        ("torch", "2.9.1", CU128, "RTX5090", "560.28.03", Verdict.GPU_BROKEN),
        ("torch", "2.9.1", CU128, "B200", "570.25", Verdict.GPU_BROKEN),
        ("torch", "2.9.1", CU128, "B200", "570.26", Verdict.GPU_READY),
        ("torch", "2.5.1", TORCH, "V100", "580.173.02", Verdict.GPU_READY),
        ("torch", "2.5.1", TORCH, "V100", "590.44.01", Verdict.GPU_BROKEN),
        ("torch", "1.13.1", CU117, "K80", "470.57.02", Verdict.GPU_READY),
        ("torch", "1.13.1", CU117, "K80", "535.104.05", Verdict.GPU_BROKEN),
        ("torch", "2.5.1", TORCH, "MI300X", None, Verdict.GPU_BROKEN),
        ("torch", "2.8.0", replace(GPU, rocm="6.4"), "MI300X", None, Verdict.GPU_READY),
        ("torch", "2.8.0", replace(GPU, rocm="6.4"), "MI355X", None, Verdict.GPU_BROKEN),
        ("torch", "2.8.0", replace(GPU, rocm="6.4"), "A100", "580.65.06", Verdict.GPU_BROKEN),
    ],
)  # fmt: skip
def test_build_on_a_machine(
    name: str, version: str, build: FrameworkBuild, gpu: str, driver: str | None, verdict: Verdict
) -> None:
    assert audit(framework(name, version, build), target=on(gpu, driver)).verdict is verdict


def test_cuda_without_a_framework_is_judged_for_the_machine() -> None:
    libraries = (GpuLibrary("cudart", "13.0.96", "/usr/local/cuda/lib64/libcudart.so.13", visible=True),)
    found = audit(target=on("V100", "535.104.05"), libraries=libraries)
    assert found.verdict is Verdict.NO_FRAMEWORK
    assert codes(found, "error") == {"driver-too-old", "gpu-not-covered"}
    assert not codes(audit(target=on("H100", "580.65.06"), libraries=libraries), "error")


def test_findings_come_gravest_first() -> None:
    broken = framework("torch", "2.5.1", TORCH, lacking=(Loaded(Want("libcudnn.so.9", "x"), None),))
    found = audit(broken, inventory=image(environment={"A": "b"}))
    severities = [one.severity.value for one in found.findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert {"error", "info"} <= set(severities)


def test_every_rule_is_listed_once_by_what_it_judges() -> None:
    listed = {"FrameworkCase": rules.FRAMEWORK_RULES, "ImageCase": rules.IMAGE_RULES}
    found: dict[str, set[object]] = {kind: set() for kind in listed}
    for module in vars(rules).values():
        for function in vars(module).values() if inspect.ismodule(module) else ():
            if inspect.isfunction(function) and function.__annotations__.get("return") == "Iterator[Finding]":
                assert function.__annotations__.keys() == {"case", "return"}, function
                found[function.__annotations__["case"]].add(function)
    assert found == {kind: set(rules_of_kind) for kind, rules_of_kind in listed.items()}
    assert all(len(set(rules_of_kind)) == len(rules_of_kind) for rules_of_kind in listed.values())
