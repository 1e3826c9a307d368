"""Facts of a framework: its version, its parts, and its own advice."""

from __future__ import annotations

from dataclasses import replace

from tests.gpu.judged import GPU, PYTHON, TORCH, dist, framework
from toolkit.gpu.facts import this_machine
from toolkit.inventory.knowledge.builds import FrameworkBuild


def test_version_of_the_build_comes_before_that_of_the_metadata() -> None:
    assert framework("torch", "2.5.1", TORCH).version == "2.5.1+cu124"
    assert framework("torch", "2.5.1", GPU).version == "2.5.1"


def test_parts_are_the_other_distributions_of_the_framework() -> None:
    jax = framework("jax", "0.6.2", GPU, dist("jaxlib", "0.6.2"), dist("jax-cuda12-plugin", "0.6.2"), dist("flax"))
    assert [part.name for part in jax.parts] == ["jaxlib", "jax-cuda12-plugin"]


def test_advice_is_that_of_the_framework_or_none() -> None:
    cpu = framework("torch", "2.5.1", FrameworkBuild("2.5.1+cpu", gpu=False))
    assert "+cpu" in (cpu.advice("cpu-only-build") or "")
    assert cpu.advice("no-such-code") is None
    assert "{" not in (replace(cpu, build=TORCH).advice("missing-cuda-library") or "")


def test_a_framework_is_called_by_its_own_python() -> None:
    assert framework("torch", "2.5.1", TORCH).command("my image.sif") == ["ctk", "run", "my image.sif", PYTHON.path]


def test_this_machine_is_judged_without_a_driver_or_a_gpu() -> None:
    machine = this_machine()
    assert (machine.driver, machine.gpu, machine.capability) == (None, None, None)
    assert machine.architecture
