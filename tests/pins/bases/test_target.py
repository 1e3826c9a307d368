"""The Python of a base that packages are added to, and what conda installed there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, inventory_of, python_files
from toolkit.pins.bases.target import is_recorded, read_target, recorded_target
from toolkit.recipes.model import Base, Bootstrap

if TYPE_CHECKING:
    from pathlib import Path


def test_what_conda_installed_under_a_name_of_its_own_is_found(tmp_path: Path) -> None:
    """Packages of conda without a RECORD: `pytorch` is torch, `matplotlib-base` is matplotlib."""
    conda = "opt/conda"
    site = f"{conda}/lib/python3.10/site-packages"
    packages = {"pytorch-2.1.0-py3.10_0": "torch-2.1.0", "matplotlib-base-3.8.0-py310_0": "matplotlib-3.8.0"}
    fill(tmp_path, {**python_files("3.10", conda), f"{conda}/conda-meta/history": ""})
    for package, distribution in {**packages, "": "other-1.0"}.items():
        name, version = distribution.split("-")
        fill(tmp_path, {f"{site}/{distribution}-py3.10.egg-info/PKG-INFO": f"Name: {name}\nVersion: {version}\n"})
        fill(tmp_path, {f"{conda}/conda-meta/{package}.json": "{}"} if package else {})
    target = read_target(inventory_of(tmp_path), lambda name: name == "torch")
    assert target is not None
    assert target.conda == {"torch", "matplotlib"}


@pytest.mark.parametrize(
    ("python", "version", "known"),
    [("3.12", "2.8.0", True), ("3.12", "2.8.0a0+5228986c39", False), (None, "2.8.0", False), ("3.12", None, True)],
)
def test_build_of_a_vendor_is_not_recorded_well_enough(python: str | None, version: str | None, known: bool) -> None:
    base = Base("b", Bootstrap.DOCKER, "a/b:1", python=python, framework="torch", framework_version=version)
    assert is_recorded(base) is known
    assert (recorded_target(base, "x86_64") is not None) is known


@pytest.mark.parametrize(("glibc", "pair"), [("2.36", (2, 36)), (None, None)])
def test_recorded_glibc_of_a_base_is_used(glibc: str | None, pair: tuple[int, int] | None) -> None:
    base = Base("b", Bootstrap.DOCKER, "a/b:1", python="3.12", installer="pip", glibc=glibc)
    found = recorded_target(base, "aarch64")
    assert found is not None
    assert found.glibc == pair
