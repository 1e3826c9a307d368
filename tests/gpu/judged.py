"""Audits of plain values: frameworks, images and targets for the tests of rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.gpu.audit import Audit, judge_image
from toolkit.gpu.compatibility import find_gpu
from toolkit.gpu.facts import FrameworkFacts, ImageFacts, Loaded, TargetMachine
from toolkit.inventory.contents.model import Distribution, Interpreter, Inventory
from toolkit.inventory.knowledge.builds import FrameworkBuild
from toolkit.inventory.knowledge.frameworks import knowledge

if TYPE_CHECKING:
    from toolkit.gpu.audit import Audit


SITE = "/usr/lib/python3/dist-packages"


PYTHON = Interpreter("/usr/bin/python3.11", "3.11.2", "/usr", "system", (SITE,), default=True)


QUIET = {"PYTHONNOUSERSITE": "1"}


def dist(name: str, version: str = "1.0", **more: str) -> Distribution:
    return Distribution(name, version, SITE, f"{SITE}/{name}-{version}.dist-info", **more)


def image(*distributions: Distribution, environment: dict[str, str] | None = None, **more: object) -> Inventory:
    variables = tuple((environment or QUIET).items())
    plain = Inventory(
        "x.sif", "flat SIF", "x86_64", "2.36", "debian 12", variables, (PYTHON,), distributions, (), ()
    )  # fmt: skip
    return replace(plain, **more)  # type: ignore[arg-type]


def framework(
    name: str,
    version: str,
    build: FrameworkBuild,
    *others: Distribution,
    lacking: tuple[Loaded, ...] = (),
    **more: object,
) -> FrameworkFacts:
    own = dist(name, version)
    known = knowledge().framework_of(name)
    assert known is not None
    plain = FrameworkFacts(known, PYTHON.path, own, (own,), build, lacking, {one.name: one for one in others})
    return replace(plain, **more)  # type: ignore[arg-type]


def audit(*frameworks: FrameworkFacts, target: TargetMachine | None = None, **more: object) -> Audit:
    inventory = more.pop("inventory", None) or image()
    return judge_image(ImageFacts(inventory, frameworks, more.pop("libraries", ()), **more), target or TargetMachine())  # type: ignore[arg-type]


GPU = FrameworkBuild("", gpu=True)


TORCH = FrameworkBuild("2.5.1+cu124", gpu=True, cuda="12.4", cudnn="9", architectures=("sm_70", "sm_80", "sm_90"))


def codes(found: Audit, severity: str | None = None) -> set[str]:
    return {one.code for one in found.findings if severity in (None, one.severity.value)}


def on(gpu: str | None, driver: str | None) -> TargetMachine:
    found = find_gpu(gpu) if gpu else None
    return TargetMachine(
        driver=driver, gpu=gpu, capability=found.capability if found else None, amd=found.amd if found else None
    )


# TensorFlow 2.15: binary code up to 8.0, and PTX of CUDA 12.2 for newer GPUs.
TENSORFLOW = replace(GPU, cuda="12.2", architectures=("sm_60", "sm_70", "sm_80", "compute_80"))


COMPAT = "/usr/local/cuda/compat/libcuda.so.1"


CU124 = replace(TORCH, cuda="12.4", architectures=("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"))
