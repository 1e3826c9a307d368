"""Constraints that keep what the base protects."""

from __future__ import annotations

from tests.pins.lock.test_protected import lines
from tests.pins.python_targets import OLD, TENSORFLOW, TORCH, distribution, target
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.lock.protected import protect
from toolkit.pins.resolver.constraints import broken_by, hard_constraints, soft_constraints


def test_numpy_may_move_within_the_major_version_that_the_framework_was_compiled_for() -> None:
    assert "numpy>=1,<2" in lines(TENSORFLOW)
    assert "numpy==1.26.4" not in lines(TENSORFLOW)


def test_companions_that_are_not_there_yet_must_fit_the_framework() -> None:
    assert {"torchvision==0.20.*", "torchaudio==2.5.*"} <= lines(TORCH)
    assert "keras<2.4" in lines(OLD)
    reason = next(bound.why for bound in protect(OLD, knowledge()).bounds if bound.name == "keras")
    assert "refuses TensorFlow older than 2.2" in reason


def test_other_variants_are_forbidden_except_installed_one() -> None:
    assert {"tensorflow<0", "tensorflow-cpu<0", "tf-nightly<0"} <= lines(OLD)
    assert "tensorflow-gpu<0" not in lines(OLD)


def test_requirements_of_protected_distributions_are_hard_and_others_soft() -> None:
    protected = protect(TENSORFLOW, knowledge())
    hard = {constraint.line for constraint in hard_constraints(TENSORFLOW, protected)}
    soft = {constraint.line for constraint in soft_constraints(TENSORFLOW, protected)}
    assert "protobuf!=4.21.0,<5.0.0dev,>=3.20.3" in hard
    assert "urllib3<1.27" in soft - hard
    broken = broken_by(TENSORFLOW, {"urllib3": "2.2.0"})
    assert [(bound.line, bound.by) for bound in broken] == [("urllib3<1.27", "requests 2.28.0 in the base")]


def test_bound_broken_by_base_is_ignored() -> None:
    odd = target(distribution("torch", "2.5.1", "sympy==1.13.1"), distribution("sympy", "1.12"))
    assert "sympy==1.13.1" not in lines(odd)
