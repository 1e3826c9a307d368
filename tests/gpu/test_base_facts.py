"""What the files of an image tell of it as a base."""

from __future__ import annotations

from dataclasses import replace

from tests.gpu.judged import PYTHON, framework, image
from toolkit.gpu.base_facts import describe_base
from toolkit.gpu.facts import GpuLibrary, ImageFacts
from toolkit.inventory.knowledge.builds import FrameworkBuild
from toolkit.recipes.model import Base, Bootstrap

BASE = Base("mine", Bootstrap.DOCKER, "a/b:1")


def library(name: str, version: str) -> GpuLibrary:
    return GpuLibrary(name, version, f"/usr/lib/lib{name}.so.{version}", visible=True)


def test_a_framework_image_tells_all() -> None:
    build = FrameworkBuild(
        "2.6.0+cu126", True, "12.6", "9", ("compute_90", "sm_90", "sm_70", "sm_120", "sm_90", "gfx90a")
    )
    libraries = (library("cudnn", "9"), library("cudnn", "9.5.1.17"), library("cudart", "12.6.77"))
    found = describe_base(BASE, ImageFacts(image(), (framework("torch", "2.6.0+cu126", build),), libraries))
    assert (found.python, found.python_path, found.os, found.glibc) == (
        *("3.11.2", "/usr/bin/python3.11"),
        *("Debian 12", "2.36"),
    )
    assert (found.framework, found.framework_version) == ("torch", "2.6.0+cu126")
    assert (found.cuda, found.cudnn) == ("12.6", "9.5.1.17")
    assert found.code == ("sm_70", "sm_90", "compute_90", "sm_120")
    assert found.architectures == ("x86_64",)
    assert (found.name, found.reference) == ("mine", "a/b:1")


def test_the_registry_s_architectures_stay_and_unusual_versions_are_left_out() -> None:
    build = FrameworkBuild("", True)
    unusual = framework("torch", "2.3.0a0+6ddf5cf85e.nv24.4", build)
    odd = replace(unusual, distribution=replace(unusual.distribution, version="2!weird version"))
    known = replace(BASE, architectures=("x86_64", "aarch64"))
    for found, version in ((unusual, "2.3.0a0+6ddf5cf85e.nv24.4"), (odd, None)):
        described = describe_base(known, ImageFacts(image(os="rhel 9.4"), (found,), ()))
        assert described.framework_version == version
        assert described.architectures == ("x86_64", "aarch64")
        assert (described.os, described.cuda, described.cudnn, described.code) == ("RHEL 9.4", None, None, ())


def test_an_image_for_a_stack_of_one_s_own_has_no_framework() -> None:
    libraries = (library("cudart", "12.4.127"),)
    found = describe_base(BASE, ImageFacts(image(), (), libraries))
    assert (found.framework, found.python, found.cuda) == (None, "3.11.2", "12.4")
    bare = describe_base(BASE, ImageFacts(image(interpreters=(), os="", glibc=None, architecture=None), (), ()))
    assert bare == BASE
    assert describe_base(BASE, ImageFacts(image(interpreters=(PYTHON,)), (), ())).installer == "pip"
