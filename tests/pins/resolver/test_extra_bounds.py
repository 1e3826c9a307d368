"""An extra's bound on the base's framework: what counts, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version

from tests.pins.python_targets import OLD, TENSORFLOW, TORCH
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.lock.protected import protect
from toolkit.pins.resolver.extra_bounds import find_extra_bound, wants_newer


def refusal(base: object, *requires: str) -> str | None:
    pins = protect(base, knowledge()).pins  # type: ignore[arg-type]
    bound = find_extra_bound(requires, pins, knowledge(), base.environment())  # type: ignore[attr-defined]
    return bound.why("former") if bound else None


def test_extra_bound_refuses_an_older_framework() -> None:
    why = refusal(TORCH, 'torch>=2.6; extra == "torch"', "numpy>=1.17")
    assert why == "newer former needs torch>=2.6, as its extra [torch] says; the base has 2.5.1+cu124"
    why = refusal(TENSORFLOW, "tensorflow >=2.18 ; extra == 'tf'")
    assert why == "newer former needs tensorflow>=2.18, as its extra [tf] says; the base has 2.15.1"


# Each line is of a release on PyPI (2026-11-21), but for those that say otherwise.
@pytest.mark.parametrize(
    "requires",
    [
        ('torch>=2.4; extra == "torch"',),  # safetensors 0.8.0
        ('torch>=2.8.0; extra == "audio"', 'torch; extra == "torch"'),  # datasets 5.2.0: a feature
        ('torch==2.8.0; extra == "typing"', 'torch==2.8.0; extra == "all"'),  # torchmetrics 1.9.0
        ('torch>=2.6; extra == "dev-torch"', 'torch>=2.6; extra == "testing"'),  # made up
        ('torch>=2.6; extra == "torch" and python_version >= "3.14"',),  # made up: another Python
        ('torch>=2.6; extra == "torch-new"', 'torch>=2.0; extra == "torch"'),  # made up: one of two takes it
        ('tensorflow>=2.18; extra == "tf"',),  # tensorflow-probability's, where the base has none
        ("torch>=2.6",),  # not in an extra: the resolver's own work
        ('torch>=2.6; extra == "torch" or broken (',),
    ],
)
def test_extra_bound_that_does_not_count_refuses_nothing(requires: tuple[str, ...]) -> None:
    assert refusal(TORCH, *requires) is None


def test_extra_bound_of_a_pinned_extra_beside_a_true_one_refuses_nothing() -> None:
    pinned = 'tensorflow==2.18.0; extra == "pinned-tf"'  # safetensors 0.8.0
    assert refusal(TENSORFLOW, pinned, 'tensorflow>=2.11.0; extra == "tensorflow"') is None
    assert refusal(TENSORFLOW, pinned) is None


def test_extra_bound_with_an_upper_end_refuses_no_newer_framework() -> None:
    assert refusal(TENSORFLOW, "tensorflow <2.6.0,>=2.0.0 ; extra == 'tensorflow'") is None  # thinc 9.1.1


def test_extra_bound_counts_for_every_name_of_a_framework_and_for_devices() -> None:
    assert refusal(OLD, 'tensorflow>=2.4; extra == "tensorflow"') is not None, "the base has tensorflow-gpu"
    assert refusal(TORCH, 'torch>=2.7; extra == "cuda12"', 'torch>=2.7; extra == "cpu"') is not None


def test_extra_bound_takes_a_vendors_prerelease_for_the_release() -> None:
    assert not wants_newer(Requirement("torch>=2.3"), Version("2.3.0a0+ebedce2"))
    assert wants_newer(Requirement("torch>2.3"), Version("2.3.0a0+ebedce2"))
    assert wants_newer(Requirement("torch~=2.4"), Version("2.3.0a0+ebedce2"))
    assert wants_newer(Requirement("torch==2.4.*"), Version("2.3.1"))
    assert not wants_newer(Requirement("torch===weird"), Version("2.3.1"))


@given(st.tuples(st.integers(0, 9), st.integers(0, 30)), st.tuples(st.integers(0, 9), st.integers(0, 30)))
def test_extra_bound_wants_newer_where_the_resolver_would_refuse(
    there: tuple[int, int], least: tuple[int, int]
) -> None:
    version = Version(f"{there[0]}.{there[1]}")
    for operator in (">=", ">"):
        requirement = Requirement(f"torch{operator}{least[0]}.{least[1]}")
        assert wants_newer(requirement, version) is not requirement.specifier.contains(version)
    assert not wants_newer(Requirement(f"torch<={least[0]}.{least[1]}"), version)


@given(st.text(max_size=40), st.text(max_size=20))
def test_extra_bound_reads_any_metadata(name: str, extra: str) -> None:
    refusal(TORCH, f'{name}>=2.6; extra == "{extra}"', f'torch{name}; extra == "{extra}"')
