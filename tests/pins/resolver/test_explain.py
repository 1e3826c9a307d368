"""What a resolver's proof says, in a sentence."""

from __future__ import annotations

from tests.pins.python_targets import TORCH
from tests.pins.resolver.test_conflicts import request
from toolkit.pins.resolver.explain import conflicting_need, named_bar


def test_proof_gives_need_and_conflicting_constraint() -> None:
    proof = (
        "Because torchvision==0.29.2 depends on torch>=2.14.0 and torch==2.5.1+cu124, we can conclude that "
        "torchvision==0.29.2 cannot be used."
    )
    found = conflicting_need(proof, request(TORCH))
    assert found is not None
    assert found[:2] == ("torchvision", "torch>=2.14.0")
    assert found[2].line == "torch==2.5.1+cu124"


def test_proof_without_protected_package_gives_nothing() -> None:
    assert conflicting_need("Because a==1 depends on b>=2 and you require b<2, …", request(TORCH)) is None
    assert conflicting_need("Because a==1 depends on torch>=2.0 and …", request(TORCH)) is None, "the base fulfils that"


def test_proof_gives_package_that_bars_newest() -> None:
    proof = "Because sympy==1.13.1 depends on mpmath>=1.1.0,<1.4 and you require sympy==1.13.1, we can conclude …"
    pins = {"sympy": "sympy==1.13.1"}
    assert named_bar(proof, pins, "mpmath", "1.4.1") == "sympy 1.13.1 requires mpmath>=1.1.0,<1.4"
    assert named_bar(proof, pins, "mpmath", "1.3.0") is None
    assert named_bar(proof, {"torch": "torch==2.5.1"}, "mpmath", "1.4.1") is None


def test_first_of_several_choices_is_not_a_requirement() -> None:
    proof = "gpflow>=2.11.2 depends on one of: tensorflow-probability>=0.12.0,<=0.15.0 tensorflow-probability>=0.16.0"
    pins = {"gpflow": "gpflow==2.11.2"}
    assert named_bar(proof, pins, "tensorflow-probability", "0.25.0") is None
    assert named_bar(proof.replace("one of: ", ""), pins, "tensorflow-probability", "0.25.0") is not None
