"""What a lock is made from, and what cannot be locked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.pins.python_targets import TENSORFLOW, TORCH
from toolkit.pins.locking import check_requirements, contradictions, input_hash
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import WrongInput


def recipe(*packages: str, base: Base | None = None) -> Recipe:
    return Recipe("x", Path("x.toml"), base or Base("b", "docker", "a/b:1"), packages=packages)


def test_the_input_of_a_lock_is_what_is_asked_in_any_order_and_spelling() -> None:
    one = input_hash(recipe("Timm", "scikit_learn >= 1"), None, None)
    assert one == input_hash(recipe("scikit-learn>=1", "timm"), None, None)
    assert one != input_hash(recipe("scikit-learn>=1"), None, None)
    assert one != input_hash(recipe("Timm", "scikit_learn >= 1"), None, "2024-01-01")
    assert one != input_hash(recipe("timm", "scikit-learn>=1", base=Base("b", "docker", "a/b:2")), None, None)


def test_input_hash_uses_content_of_local_base_not_its_path() -> None:
    here, there = (Base("b", "localimage", path) for path in ("/here/x.sif", "/there/y.sif"))
    assert input_hash(recipe(base=here), "sha256:1", None) == input_hash(recipe(base=there), "sha256:1", None)
    assert input_hash(recipe(base=here), "sha256:1", None) != input_hash(recipe(base=here), "sha256:2", None)


@pytest.mark.parametrize("line", ["x @ git+https://example.org/x.git", "x @ file:///tmp/x.whl", "x @ ./x.whl"])
def test_unlockable_requirement_is_refused_with_fix(line: str) -> None:
    with pytest.raises(WrongInput) as caught:
        check_requirements(recipe(line))
    assert caught.value.fix is not None


def test_an_address_with_a_file_behind_it_can_be_locked() -> None:
    assert check_requirements(recipe("x @ https://example.org/x-1.zip")) == ("x @ https://example.org/x-1.zip",)


def test_base_that_is_recorded_less_exactly_is_not_contradicted() -> None:
    said = Base("b", "docker", "a/b", framework="tensorflow", framework_version="2.15")
    assert contradictions(said, TENSORFLOW) == ()
    assert contradictions(replace(said, framework="tensorflow-gpu"), TENSORFLOW) == (), "a variant of the framework"
    assert contradictions(replace(said, framework_version="2.1"), TENSORFLOW) == (
        "bases.toml says tensorflow 2.1, the image has 2.15.1",
    )


def test_base_that_contradicts_its_record_is_reported() -> None:
    said = Base("b", "docker", "a/b", python="3.11", framework="tensorflow", framework_version="2.15.1")
    assert contradictions(said, TENSORFLOW) == ()
    assert contradictions(said, TORCH) == ("bases.toml says tensorflow 2.15.1, the image has none",)
    assert len(contradictions(replace(said, python="3.1", framework_version="2.15.0"), TENSORFLOW)) == 2
