"""The build of a framework: for the CPU, or with files that are missing."""

from __future__ import annotations

from dataclasses import replace

from tests.gpu.judged import GPU, TORCH, audit, codes, framework
from toolkit.inventory.knowledge.builds import FrameworkBuild

CPU = FrameworkBuild("2.5.1+cpu", gpu=False)


def test_a_cpu_build_is_a_warning_with_the_framework_s_own_fix() -> None:
    found = audit(framework("torch", "2.5.1", CPU))
    assert codes(found, "warning") == {"cpu-only-build"}
    (finding,) = (one for one in found.findings if one.code == "cpu-only-build")
    assert finding.message == "PyTorch: torch 2.5.1+cpu is built without CUDA."
    assert finding.fix is not None
    assert "+cpu" in finding.fix


def test_missing_files_count_for_more_than_the_build() -> None:
    found = audit(framework("torch", "2.5.1", replace(CPU, complete=False)))
    assert codes(found, "error") == {"framework-incomplete"}
    assert "cpu-only-build" not in codes(found)


def test_lost_libraries_are_counted_and_the_first_are_named() -> None:
    found = audit(framework("torch", "2.5.1", TORCH, lost=("a.so", "b.so", "c.so", "d.so")))
    (finding,) = (one for one in found.findings if one.code == "framework-incomplete")
    assert "lacks 4 libraries that a RECORD lists: a.so, b.so, c.so, …" in finding.message
    one = audit(framework("torch", "2.5.1", GPU, lost=("a.so",)))
    assert any("lacks 1 library that a RECORD lists: a.so." in finding.message for finding in one.findings)
