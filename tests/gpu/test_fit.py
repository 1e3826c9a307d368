"""One table for all commands: `ctk bases` offers a base exactly if the audit of such an image is not broken."""

from __future__ import annotations

import itertools
import os

import pytest

from tests.gpu.judged import image
from toolkit.gpu.audit import judge_image
from toolkit.gpu.choosing import BaseRequest, exclusions, implied_architectures
from toolkit.gpu.compatibility import compatibility, find_gpu
from toolkit.gpu.facts import FrameworkFacts, GpuLibrary, ImageFacts, Loaded
from toolkit.gpu.fit import Build, impossible_driver, misfits
from toolkit.gpu.targets import machines
from toolkit.inventory.contents.model import Distribution
from toolkit.inventory.knowledge.builds import FrameworkBuild, Want
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.authoring.wheels import wheel_bases
from toolkit.recipes.bases import bases_in
from toolkit.recipes.model import Base, Target
from toolkit.support.findings import Severity
from toolkit.support.paths import shipped

BASES = bases_in(shipped("defs"))
ALL = [*BASES.values(), *wheel_bases(BASES, knowledge()).values()]
GPUS = [*compatibility().gpus, *(name for row in compatibility().amd for name in row.names)]
# Around each limit: of a GPU generation, of a CUDA release, and the one that comes with a toolkit.
DRIVERS = (
    *("375.26", "410.48", "418.39", "450.36.06", "450.80.02", "455.22", "470.256.02", "471.0", "520.61.05"),
    *("525.60.12", "525.60.13", "535.54.03", "535.104.05", "545.23.06", "560.28.03", "570.25", "570.26"),
    *("575.51.02", "575.51.03", "579.99", "580.65.06", "580.173.02", "590.44.01", "595.45.04", "610.43.02", None),
)
# `make soak` asks all of them.
QUESTIONS = (
    itertools.product(ALL, GPUS, DRIVERS)
    if os.environ.get("CTK_ALL_QUESTIONS")
    else itertools.product(
        ALL,
        ("K80", "V100", "RTX3090", "H100", "GH200", "RTX5090", "MI300X"),
        ("470.256.02", "525.60.13", "535.104.05", "570.26", "580.65.06", "590.44.01", None),
    )
)


def image_of(base: Base, architecture: str) -> ImageFacts:
    """An image whose files say what is recorded of a base."""
    number = (base.cudnn or "").partition(".")[0]
    cudnn = f"/opt/lib/libcudnn.so.{number}"
    inventory = image(architecture=architecture)
    libraries = [GpuLibrary("cudnn", base.cudnn, cudnn, visible=True)] if base.cudnn and number.isdigit() else []
    if base.framework is None:
        libraries += [GpuLibrary("cudart", base.cuda, "/opt/lib/libcudart.so", visible=True)] if base.cuda else []
        return ImageFacts(inventory, (), tuple(libraries))
    known = knowledge().framework_of(base.framework) or next(
        found for found in knowledge().frameworks if base.framework in found.bases
    )
    own = Distribution(base.framework, base.framework_version or "", "/opt", "/opt/own.dist-info")
    loaded = (Loaded(Want(f"libcudnn.so.{number}", "/opt/x.so"), cudnn),) if libraries else ()
    build = FrameworkBuild("", gpu=True, cuda=base.cuda, cudnn=number, architectures=base.code, rocm=base.rocm)
    framework = FrameworkFacts(known, inventory.interpreters[0].path, own, (own,), build, loaded, {})
    return ImageFacts(inventory, (framework,), tuple(libraries))


def disagreement(base: Base, gpu: str, driver: str | None) -> str | None:
    """What differs between the two commands; None if they agree."""
    request = BaseRequest(gpus=(find_gpu(gpu),), driver=driver, allow_broken=True)
    certain = [found for found in exclusions(base, request) if found.certain]
    wanted = implied_architectures(request)
    # An image for several architectures is that for the node's, where there is one.
    own = next((name for name in base.architectures or wanted if name in wanted or not wanted), None)
    target = Target((gpu,), driver, (wanted or (own or "x86_64",)))
    facts = image_of(base, own or (base.architectures or ("x86_64",))[0])
    errors = [found for found in judge_image(facts, machines(target)[0]).findings if found.severity is Severity.ERROR]
    if bool(certain) == bool(errors):
        return None
    return f"{base.name}, {gpu}, driver {driver}: bases {certain}, audit {[found.message for found in errors]}"


def test_bases_offers_what_the_audit_does_not_call_broken() -> None:
    found = [told for question in QUESTIONS if (told := disagreement(*question)) is not None]
    assert not found, f"{len(found)}: {found[:5]}"


@pytest.mark.parametrize(
    ("gpu", "driver", "possible"),
    [
        ("V100", "580.173.02", True), ("V100", "590.44.01", False), ("P100", "590.44.01", False), ("M40", "595", False),
        ("K80", "470.256.02", True), ("K80", "471.0", False), ("K80", "535.104.05", False), ("T4", "610.43.02", True),
        ("B200", "570.25", False), ("B200", "570.26", True), ("B300", "570.26", False), ("H100", "515.65.01", False),
        ("A100", None, True), ("MI300X", "590.44.01", True), ("Orin", "540.3.0", True),
    ],
)  # fmt: skip
def test_driver_knows_a_range_of_gpus(gpu: str, driver: str | None, possible: bool) -> None:
    assert (impossible_driver(find_gpu(gpu).capability, driver) is None) is possible


@pytest.mark.parametrize(
    ("code", "cuda", "gpu", "rule", "certain"),
    [
        (("sm_80",), "11.0", "RTX3090", None, True), (("sm_80",), "11.2", "RTX4090", None, True),
        (("compute_80",), "11.2", "H100", "older-than-gpu", False), (("compute_80",), "11.8", "H100", None, True),
        ((), "11.8", "B200", "older-than-gpu", True), ((), "12.3", "B200", "older-than-gpu", False),
        ((), "12.8", "B200", None, True), (("sm_87",), "12.6", "Orin", None, True),
        (("sm_80",), "12.6", "Orin", "jetson", True), ((), "12.6", "Orin", "jetson", False),
    ],
)  # fmt: skip
def test_build_that_is_older_than_a_gpu(
    code: tuple[str, ...], cuda: str, gpu: str, rule: str | None, certain: bool
) -> None:
    found = list(misfits(Build(cuda=cuda, code=code), find_gpu(gpu)))
    assert [(misfit.rule, misfit.certain) for misfit in found] == ([(rule, certain)] if rule else [])
