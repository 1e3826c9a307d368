"""Distributions that do not work with the release of the framework beside them, though it looks ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.test_ready import SITE, audit, codes, jax, torch
from tests.inventory.making import distribution

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "requires", "torch_version", "broken"),
    [
        ("vllm", "torch==2.6.0", "2.5.1", True),
        ("vllm", "torch==2.5.1", "2.5.1", False),
        ("xformers", "torch==2.4.*", "2.5.1", True),
        ("xformers", "torch>=2.4", "2.5.1", False),
        ("vllm", 'torch==2.6.0; extra == "new"', "2.5.1", False),
        ("vllm", "torch==2.6.0", "2.6.0a0+ecf3bae40a.nv25.1", False),
        ("vllm", 'torch==2.6.0; platform_machine == "s390x"', "2.5.1", False),
        ("vllm", 'torch==2.6.0; sys_platform == "linux" and python_version >= "3.10"', "2.5.1", True),
        ("vllm", 'torch==2.6.0; no_such_variable == "1"', "2.5.1", False),
    ],
)
def test_a_package_that_requires_another_torch(
    tmp_path: Path, name: str, requires: str, torch_version: str, broken: bool
) -> None:
    other = distribution(name, "1.0", SITE, extra=f"Requires-Dist: {requires}\n")
    found = audit(tmp_path, torch(torch_version), other)
    assert ("companion-out-of-step" in codes(found)) is broken


@pytest.mark.parametrize(
    ("tag", "requires", "torch_version", "broken"),
    [
        # As xformers 0.0.35, torch-tensorrt 2.14.0 and bitsandbytes 0.50.2 have them.
        ("py39-none-manylinux_2_28_x86_64", "torch>=2.10", "2.5.1", True),
        ("py39-none-manylinux_2_28_x86_64", "torch>=2.10", "2.10.0", False),
        ("py39-none-manylinux_2_28_x86_64", "torch>=2.10", "2.10.0a0+b558c986e8.nv25.11", False),
        ("cp311-cp311-manylinux_2_28_x86_64", "torch<2.15.0,>=2.14.0", "2.15.0", True),
        ("py3-none-manylinux_2_24_x86_64", "torch<3,>=2.4", "2.5.1", False),
        ("py3-none-any", "torch>=2.10", "2.5.1", False),
    ],
)
def test_a_package_that_is_compiled_against_another_torch(
    tmp_path: Path, tag: str, requires: str, torch_version: str, broken: bool
) -> None:
    """Compiled code does not load with an older torch; a package of Python files may work, and torch does anyway."""
    other = distribution("xformers", "0.0.35", SITE, extra=f"Requires-Dist: {requires}\n")
    other[f"{SITE}/xformers-0.0.35.dist-info/WHEEL"] = f"Wheel-Version: 1.0\nTag: {tag}\n"
    found = audit(tmp_path, torch(torch_version), other)
    assert ("companion-out-of-step" in codes(found)) is broken


@pytest.mark.parametrize(("version", "broken"), [("2.2.2", True), ("2.3.0", False)])
def test_numpy_2_under_a_torch_that_is_compiled_for_numpy_1(tmp_path: Path, version: str, broken: bool) -> None:
    found = audit(tmp_path, torch(version), distribution("numpy", "2.2.6", SITE))
    assert ("incompatible-versions" in codes(found)) is broken


@pytest.mark.parametrize(("version", "broken"), [("0.4.25", True), ("0.4.26", False)])
def test_numpy_2_under_a_jax_that_is_compiled_for_numpy_1(tmp_path: Path, version: str, broken: bool) -> None:
    found = audit(tmp_path, jax(version, version), distribution("numpy", "2.2.6", SITE))
    assert ("incompatible-versions" in codes(found)) is broken
