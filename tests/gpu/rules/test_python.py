"""The Python that a framework is found by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.gpu import small_images
from tests.gpu.judged import PYTHON, SITE, TORCH, audit, codes, dist, framework, image
from tests.inventory.making import fill, python_files
from toolkit.gpu.audit import audit_image
from toolkit.gpu.facts import TargetMachine
from toolkit.gpu.rules.python import serves
from toolkit.inventory.contents.model import Interpreter

if TYPE_CHECKING:
    from pathlib import Path


def test_a_shadowed_copy_and_a_framework_elsewhere() -> None:
    two = replace(PYTHON, site_directories=("/first", SITE))
    first = replace(dist("numpy", "2.0"), directory="/first")
    found = audit(
        framework("torch", "2.5.1", TORCH, by_default=False),
        inventory=image(first, dist("numpy", "1.24"), interpreters=(two,)),
    )
    assert {"shadowed-distribution", "framework-not-default"} <= codes(found)


def test_a_torch_of_another_python(tmp_path: Path) -> None:
    tag = {
        f"{small_images.SITE}/torch-2.5.1.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: cp310-cp310-manylinux1_x86_64\n"
    }
    found = small_images.audit(tmp_path, small_images.torch(), tag)
    assert found.verdict.value == "gpu-broken"
    assert "is Python 3.11" in small_images.codes(found)["framework-of-other-python"]


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("cp311-cp311-linux_x86_64", True), ("cp310-cp310-linux_x86_64", False), ("cp38-abi3-linux_x86_64", True),
        ("cp312-abi3-linux_x86_64", False), ("py3-none-any", True), ("py2.py3-none-any", True),
        ("py2-none-any", True), ("cp311-none-manylinux1_x86_64", True), ("cp312-none-manylinux1_x86_64", False),
        ("cp311-cp311t-linux_x86_64", False), ("what", True),
    ],
)  # fmt: skip
def test_which_python_a_wheel_serves(tag: str, expected: bool) -> None:
    own = Interpreter("/usr/bin/python3.11", "3.11.2", "/usr", "system", ())
    assert serves([tag], own) is expected


@pytest.mark.parametrize("home", ["root", "home/builder"])
@pytest.mark.parametrize(("mode", "broken"), [(0o700, True), (0o750, True), (0o755, False)])
def test_a_python_in_the_home_of_whoever_built_the_image(tmp_path: Path, home: str, mode: int, broken: bool) -> None:
    fill(tmp_path, python_files("3.11", f"{home}/.local/share/uv/python/cpython-3.11"))
    venv = {
        "opt/venv/bin/python3": f"-> /{home}/.local/share/uv/python/cpython-3.11/bin/python3.11",
        "opt/venv/pyvenv.cfg": f"home = /{home}/.local/share/uv/python/cpython-3.11/bin\nversion = 3.11.7\n",
        "opt/venv/lib/python3.11/site-packages/": "",
        **{path.replace("usr/local", "opt/venv"): content for path, content in small_images.torch().items()},
        **small_images.environment('export PATH="/opt/venv/bin:/usr/bin"\n'),
    }
    fill(tmp_path, venv)
    (tmp_path / home).chmod(mode)
    found = audit_image(tmp_path, TargetMachine())
    assert [framework.facts.name for framework in found.frameworks] == ["torch"]
    assert ("python-not-readable" in small_images.codes(found)) is broken
