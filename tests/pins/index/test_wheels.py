"""Which file an image gets, by its Python, its C library and its pip."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.pins.python_targets import OLD, TENSORFLOW
from toolkit.pins.index.wheels import File, choose_file, serves_architecture, supported_tags, uv_platform

NUMPY = [
    "numpy-1.26.4-cp311-cp311-macosx_11_0_arm64.whl",
    "numpy-1.26.4-cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64.whl",
    "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "numpy-1.26.4-cp311-cp311-manylinux_2_34_x86_64.whl",
    "numpy-1.26.4-cp311-cp311-musllinux_1_1_x86_64.whl",
    "numpy-1.26.4-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "numpy-1.26.4.tar.gz",
]


def chosen(names: list[str], **changes: object) -> str | None:
    pip = changes.pop("pip", None)
    target = replace(TENSORFLOW, **changes)  # type: ignore[arg-type]
    file = choose_file([File(name, "", None) for name in names], supported_tags(target, pip))  # type: ignore[arg-type]
    return file.name if file else None


def test_the_wheel_for_the_newest_c_library_that_the_image_has_is_best() -> None:
    assert chosen(NUMPY) == NUMPY[3]
    assert chosen(NUMPY, glibc=(2, 31)) == NUMPY[2]
    assert chosen(NUMPY, architecture="aarch64") == NUMPY[1]


def test_an_old_pip_takes_only_the_names_that_it_knows() -> None:
    assert chosen(NUMPY, pip="20.0.2") == NUMPY[2]
    assert chosen(NUMPY, pip="19.2") == NUMPY[6], "manylinux2014 came with pip 19.3"


def test_without_a_wheel_the_source_is_taken_and_without_both_nothing() -> None:
    assert chosen(NUMPY, python="3.13.1") == NUMPY[6]
    assert chosen(NUMPY[:-1], python="3.13.1") is None


def test_an_abi3_and_a_pure_wheel_fit_but_the_exact_one_is_better() -> None:
    names = ["a-1-py3-none-any.whl", "a-1-cp38-abi3-manylinux2014_x86_64.whl", "a-1-cp311-cp311-manylinux1_x86_64.whl"]
    assert chosen(names) == names[2]
    assert chosen(names[:2]) == names[1]
    assert chosen(names[:1]) == names[0]
    assert chosen(["not a wheel.whl"]) is None


def test_python_3_6_has_the_m_in_its_tag() -> None:
    files = [
        File("a-1-cp36-cp36m-manylinux2010_x86_64.whl", "", None),
        File("a-1-cp36-cp36-linux_x86_64.whl", "", None),
    ]
    assert choose_file(files, supported_tags(OLD)) == files[0]


@pytest.mark.parametrize(
    ("glibc", "platform"),
    [
        ((2, 27), "x86_64-manylinux_2_17"),
        ((2, 28), "x86_64-manylinux_2_28"),
        ((2, 30), "x86_64-manylinux_2_28"),
        ((2, 35), "x86_64-manylinux_2_35"),
        ((2, 43), "x86_64-manylinux_2_40"),
        ((2, 12), "x86_64-manylinux_2_17"),
    ],
)
def test_uv_is_told_the_greatest_platform_it_knows_that_is_not_newer(glibc: tuple[int, int], platform: str) -> None:
    assert uv_platform(replace(TENSORFLOW, glibc=glibc)) == platform


def test_where_the_c_library_is_not_known_an_old_python_means_an_old_one() -> None:
    assert uv_platform(replace(TENSORFLOW, glibc=None)) == "x86_64-manylinux_2_28"
    assert uv_platform(replace(OLD, glibc=None)) == "x86_64-manylinux_2_17"


@pytest.mark.parametrize(
    ("name", "served"),
    [
        ("a-1-py3-none-any.whl", {"x86_64", "aarch64"}),
        ("a-1-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", {"x86_64"}),
        ("a-1-cp312-cp312-linux_aarch64.whl", {"aarch64"}),
        ("a-1-cp312-cp312-win_amd64.whl", set()),
        ("odd.whl", {"x86_64", "aarch64"}),
    ],
)
def test_architectures_of_a_wheel_are_those_of_its_name(name: str, served: set[str]) -> None:
    assert {one for one in ("x86_64", "aarch64") if serves_architecture(name, one)} == served
