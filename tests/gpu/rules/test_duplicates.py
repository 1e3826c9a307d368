"""Two frameworks or two variants of one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.gpu import small_images
from tests.gpu.judged import TORCH, audit, dist, framework
from tests.inventory.making import distribution
from toolkit.inventory.knowledge.builds import FrameworkBuild
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path


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


def test_a_distribution_that_only_asks_for_another_is_no_second_framework(tmp_path: Path) -> None:
    """tensorflow 2.15.1 for aarch64 holds no file, and requires tensorflow-cpu-aws."""
    package = {"tensorflow/__init__.py": "", "tensorflow/python/platform/build_info.py": "build_info = {}\n"}
    empty = distribution("tensorflow", "2.15.1", small_images.SITE)
    found = small_images.audit(
        tmp_path, empty, distribution("tensorflow-cpu-aws", "2.15.1", small_images.SITE, package)
    )
    assert found.verdict.value == "cpu-only"
    assert "duplicate-framework" not in small_images.codes(found)
