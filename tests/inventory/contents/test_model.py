"""Which copy of a distribution an interpreter finds, and what its ABI is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolkit.inventory.contents.model import Distribution, Interpreter, Inventory, Uncertain

PYTHON = Interpreter("/usr/bin/python3", "3.11.2", "/usr", "system", ("/first", "/second"))
OTHER = replace(PYTHON, path="/opt/bin/python", site_directories=("/opt",), default=True)


def dist(name: str, version: str, directory: str) -> Distribution:
    return Distribution(name, version, directory, f"{directory}/{name}-{version}.dist-info")


HELD = (
    dist("torch", "1", "/second"),
    dist("torch", "2", "/first"),
    dist("numpy", "1", "/second"),
    dist("x", "1", "/opt"),
)
INVENTORY = Inventory(
    "x.sif", "flat SIF", "x86_64", "2.36", "debian 12", (("A", "1"),), (PYTHON, OTHER), HELD, (), (),
    (Uncertain("B", "90-x.sh", open=True),),
)  # fmt: skip


def test_the_first_directory_on_the_path_shows_its_copy() -> None:
    visible = INVENTORY.visible(PYTHON)
    assert {name: found.version for name, found in visible.items()} == {"torch": "2", "numpy": "1"}
    assert [(found.name, found.version) for found in INVENTORY.copies(PYTHON)] == [
        ("torch", "2"), ("numpy", "1"), ("torch", "1"),
    ]  # fmt: skip
    assert set(INVENTORY.visible(OTHER)) == {"x"}


def test_the_default_python_comes_before_the_first() -> None:
    assert INVENTORY.default_interpreter() is OTHER
    assert replace(INVENTORY, interpreters=(PYTHON,)).default_interpreter() is PYTHON
    assert replace(INVENTORY, interpreters=()).default_interpreter() is None


def test_variables_and_doubts_are_told_by_their_names() -> None:
    assert (INVENTORY.variable("A"), INVENTORY.variable("B")) == ("1", "")
    assert INVENTORY.doubt("A") is None
    doubt = INVENTORY.doubt("B")
    assert doubt is not None
    assert doubt.script == "90-x.sh"


@pytest.mark.parametrize(
    ("version", "free_threaded", "tag"),
    [("3.6.9", False, "cp36m"), ("3.7", False, "cp37m"), ("3.8.1", False, "cp38"), ("3.13.0", True, "cp313t")],
)
def test_abi_tag_has_an_m_until_python_3_7(version: str, free_threaded: bool, tag: str) -> None:
    assert replace(PYTHON, version=version, free_threaded=free_threaded).abi_tag == tag
