"""Two frameworks or two variants of one."""

from __future__ import annotations

from dataclasses import replace

from tests.gpu.judged import TORCH, audit, dist, framework
from toolkit.inventory.knowledge.builds import FrameworkBuild
from toolkit.support.findings import Verdict


def test_two_variants_break_the_promise_even_where_the_cpu_one_wins() -> None:
    cpu = framework("tensorflow-cpu", "2.15.1", FrameworkBuild("", gpu=False))
    both = (dist("tensorflow", "2.15.1"), dist("tensorflow-cpu", "2.15.1"))
    found = audit(replace(cpu, variants=both, told_by_hash=True))
    assert found.verdict is Verdict.GPU_BROKEN
    message = next(one.message for one in found.findings if one.code == "duplicate-framework")
    assert "An import loads tensorflow-cpu 2.15.1 (by the hash of its files)" in message


def test_the_same_distribution_in_two_directories_is_no_second_framework() -> None:
    one = framework("torch", "2.5.1", TORCH)
    assert audit(replace(one, variants=(one.distribution, one.distribution))).verdict is Verdict.GPU_READY
