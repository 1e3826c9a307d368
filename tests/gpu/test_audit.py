"""The rules of the audit, each on plain values."""

from __future__ import annotations

import inspect
from dataclasses import replace

from tests.gpu.judged import GPU, TORCH, audit, framework, image
from toolkit.gpu import rules
from toolkit.gpu.facts import Loaded
from toolkit.inventory.knowledge.builds import FrameworkBuild, Want
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
