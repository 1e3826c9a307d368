"""The shipped recipes: each is locked over its base as it is recorded, for both architectures, and three are run."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from toolkit.gpu.targets import judge_target
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.facts import gather_facts
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.locking import make_lock
from toolkit.recipes.architectures import for_architecture
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.errors import CheckFailed
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User
    from toolkit.pins.lock.model import Lock

CATALOGUE = Catalogue(shipped("defs"), shipped("defs"))


@pytest.fixture(scope="module")
def uv(ground: Path) -> Uv:
    return open_uv(ground / "pins")


def lock(uv: Uv, name: str, architecture: str = "x86_64") -> Lock:
    recipe = for_architecture(CATALOGUE.recipe(name), architecture)
    judge_target(recipe, CATALOGUE.bases().values())
    return make_lock(uv, recipe, gather_facts(recipe.base, uv.cache, architecture=architecture))


# What must come of a framework that the recipe itself adds, and what it must not change of its base's.
ADDED = {
    "chainer": {"cupy-cuda101": "7.8.0"},
    "cupy": {"cupy-cuda12x": "14."},
    "jax": {"jax-cuda12-plugin": "0.", "nvidia-cudnn-cu12": "9.10."},
}


# Their source distributions are built for their metadata, which takes two thirds of the time of all: `make soak`.
OLD = {"chainer", "keras-bert", "keras-bert-2020"}
RECIPES = [name for name in CATALOGUE.paths() if name not in OLD or os.environ.get("CTK_ALL_RECIPES")]


@pytest.mark.parametrize("name", RECIPES)
def test_a_shipped_recipe_is_locked_over_its_recorded_base(uv: Uv, name: str) -> None:
    made = lock(uv, name)
    versions = {package.name: package.version for package in made.packages}
    assert all(package.sha256 for package in made.packages)
    own = {pin.name: pin.version for pin in made.own.pins}
    for package, version in ADDED.get(name, {}).items():
        assert own[package].startswith(version), "it is protected from now on"
    frameworks = {package for package in versions if knowledge().framework_of(package) is not None}
    assert frameworks <= own.keys()
    assert made.base.architecture == "x86_64"
    assert not [note for note in made.notes if "may not work" in note]


# Those whose base has no image for Arm: the images of the frameworks' own projects are for x86-64.
NOT_FOR_ARM = {
    "chainer": "tensorflow-2.1",
    "finetune": "pytorch-2.10-cuda12.8",
    "jupyterlab": "pytorch-2.10-cuda12.8",
    "keras-bert": "tensorflow-2.15",
    "keras-bert-2020": "tensorflow-2.1",
    "pytorch": "pytorch-2.6",
    "tensorflow": "tensorflow-2.15",
    "vision": "pytorch-2.10-cuda12.8",
}


@pytest.mark.parametrize("name", sorted(CATALOGUE.paths().keys() - NOT_FOR_ARM.keys()))
def test_a_shipped_recipe_is_locked_for_arm(uv: Uv, name: str) -> None:
    made = lock(uv, name, "aarch64")
    assert made.base.architecture == "aarch64"
    assert made.packages
    for package in made.packages:
        assert package.sha256
        tags = str(package.file).removesuffix(".whl").rpartition("-")[2]
        assert package.is_wheel
        assert tags == "any" or all(tag.endswith("_aarch64") for tag in tags.split("."))
    own = {pin.name: pin.version for pin in made.own.pins}
    for package_name, version in ADDED.get(name, {}).items():
        assert own[package_name].startswith(version)


@pytest.mark.parametrize("name", NOT_FOR_ARM)
def test_a_shipped_recipe_without_a_base_for_arm_says_so(uv: Uv, name: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        lock(uv, name, "aarch64")
    base = NOT_FOR_ARM[name]
    assert caught.value.message == f"the base {base} does not serve aarch64: it is for x86_64"
    assert caught.value.code == "base-does-not-fit"
    assert "ctk bases" in str(caught.value.fix)


# The base of Debian instead of the recipe's own, and the CPU's build of a framework, where that is another package:
# the wheels for CUDA are gigabytes.
STAND_INS = {
    "boosting": ({'"xgboost"': '"xgboost-cpu"'}, "train.py", r"LightGBM \S+ \| device: CPU \| accuracy 0\.9"),
    "jax": ({"jax[cuda12]": "jax", '"nvidia-cudnn-cu12<9.11", ': ""}, "train.py", r"JAX \S+ \| device: CPU\n"),
    "jupyterlab": ({}, "run.py", r"Python 3\.11\.\d+ \| device: CPU\n"),
}


@pytest.mark.parametrize("name", STAND_INS)
def test_a_copy_of_a_shipped_recipe_is_built_and_its_script_says_the_device(
    builder: User, work: Path, base_image: Path, name: str
) -> None:
    changes, script, says = STAND_INS[name]
    builder.ctk("new", "mine", "--like", name, cwd=work)
    assert (work / "defs/mine" / script).read_bytes() == (shipped("defs") / name / script).read_bytes()
    text = (work / "defs/mine.toml").read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    (work / "defs/mine.toml").write_text(text)
    builder.ctk("build", "mine", "--base", base_image, cwd=work, timeout=600)
    command = ["python3", f"/opt/{name}/{script}", *(["--check"] if name == "jupyterlab" else [])]
    done = builder.ctk("run", "mine.sif", "--", *command, cwd=work)
    assert re.search(says, done.stdout), done.stdout
