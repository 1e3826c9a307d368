"""Frameworks from wheels over a base without them: what is recorded, and the packages of a recipe."""

from __future__ import annotations

import pytest

from tests.pins.authoring.few_bases import BASES as FEW
from toolkit.gpu.choosing import served_range
from toolkit.gpu.compatibility import compatibility
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.proposal import propose_base, propose_from_list
from toolkit.pins.authoring.wheels import wheel_bases
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.paths import shipped

CATALOGUE = Catalogue(shipped("defs"), shipped("defs"))
BASES = CATALOGUE.bases()
WHEELS = wheel_bases(BASES, knowledge())
JAX = "python-3.12 with jax[cuda12], nvidia-cudnn-cu12<9.11"


def test_every_table_of_wheels_is_over_a_base_with_python_and_a_digest() -> None:
    rows = [wheels for framework in knowledge().frameworks for wheels in framework.wheels]
    assert len(rows) == len(WHEELS) == 5
    assert all(BASES[wheels.base].digest and BASES[wheels.base].python and wheels.source for wheels in rows)
    assert all(set(wheels.skip) <= {package.partition("<")[0] for package in wheels.packages} for wheels in rows)


@pytest.mark.parametrize("name", WHEELS)
def test_driver_of_wheels_is_that_of_their_cuda(name: str) -> None:
    base = WHEELS[name]
    floor = compatibility().floor(base.cuda or "")
    assert floor is not None
    assert base.driver == floor.minimum
    assert served_range(base)


@pytest.mark.parametrize(("recipe", "packages"), [("jax", 2), ("cupy", 1), ("chainer", 2)])
def test_shipped_recipe_has_the_wheels_that_are_recorded(recipe: str, packages: int) -> None:
    ours = CATALOGUE.recipe(recipe)
    found = [base for base in WHEELS.values() if set(base.wheels) <= set(ours.packages)]
    assert [(base.start, len(base.wheels), base.skip) for base in found] == [
        (ours.base.name, packages, ours.import_skip)
    ]


@pytest.mark.parametrize(
    ("lines", "base", "packages"),
    [
        ("jax flax", "python-3.12", "jax[cuda12] nvidia-cudnn-cu12<9.11 flax"),
        ("jax==0.6.2 jaxlib==0.6.2", "python-3.12", "jax[cuda12]==0.6.2 nvidia-cudnn-cu12<9.11"),
        ("jax[cuda13]>=0.7", "python-3.12", "jax[cuda13]>=0.7"),
        ("flax", "python-3.12", "jax[cuda12] nvidia-cudnn-cu12<9.11 flax"),
        ("cupy>=13 scipy", "python-3.12", "cupy-cuda12x[ctk]>=13 scipy"),
        ("cupy-cuda11x==13.6.0", "python-3.12", "cupy-cuda11x==13.6.0"),
        ("chainer", "tensorflow-2.1", "chainer==7.8.1 cupy-cuda101==7.8.0"),
        ("cupy chainer==7.8.0 numpy", "tensorflow-2.1", "chainer==7.8.0 cupy-cuda101==7.8.0 numpy"),
        ("torch jax", "pytorch-2.6", ""),
    ],
)
def test_list_gets_wheels_in_the_requested_versions(lines: str, base: str, packages: str) -> None:
    few = {name: entry for name, entry in FEW.items() if name not in ("jax-24.10", "chainer-7.8")}
    proposal = propose_from_list(lines.split(), names(), knowledge(), {**few, **WHEELS})
    assert (proposal.base, proposal.packages, proposal.uses_gpu) == (base, tuple(packages.split()), True)


def test_chainer_is_not_proposed_with_the_cupy_of_another_base() -> None:
    without = {name: base for name, base in WHEELS.items() if base.framework != "chainer"}
    proposal = propose_from_list(["chainer", "cupy"], names(), knowledge(), without)
    assert proposal.base is None
    assert [finding.code for finding in proposal.findings] == ["no-base-fits"]


def test_empty_recipe_on_wheels_has_them() -> None:
    proposal = propose_base(WHEELS[JAX], knowledge(), "jax<0.7")
    assert (proposal.base, proposal.packages) == ("python-3.12", ("jax[cuda12]<0.7", "nvidia-cudnn-cu12<9.11"))
    assert propose_base(BASES["debian-12"], knowledge()).packages == ()
