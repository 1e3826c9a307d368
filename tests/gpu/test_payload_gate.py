"""What the gate says of a framework's answers; and the whole text that is sent, run by a Python without a GPU."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from toolkit.gpu.framework_check import checkable, gate_script
from toolkit.gpu.links.capability import _GROWN, _TOLERANCE
from toolkit.gpu.payload_gate import GROWN, TOLERANCE, judged
from toolkit.support.explanations import explanations

GOOD = {
    "index": 0,
    "difference": 0.001,
    "place": {"answer": 0, "on_device": True},
    "used_before": None,
    "used_after": None,
}
FACTS: dict[str, Any] = {
    "version": "2.5.1",
    "count": 1,
    "reason": None,
    "error": None,
    "failed": None,
    "products": [GOOD],
}


def with_product(**changed: Any) -> dict[str, Any]:
    return {"products": [{**GOOD, **changed}]}


@pytest.mark.parametrize(
    ("changed", "answer"),
    [
        ({}, "computed 1 PyTorch 2.5.1 computed on 1 GPU"),
        ({"failed": "import", "error": "no"}, "fails framework-import-fails PyTorch cannot be imported: no"),
        ({"count": 0, "reason": "why"}, "fails framework-sees-no-gpu PyTorch 2.5.1 sees no GPU, though the driver"),
        ({"failed": "devices", "error": "E"}, "fails framework-sees-no-gpu PyTorch 2.5.1 sees no GPU"),
        ({"failed": "product", "error": "E"}, "fails framework-compute-fails PyTorch 2.5.1 cannot compute on the CPU"),
        (with_product(error="E"), "fails framework-compute-fails PyTorch 2.5.1 on GPU 0: E"),
        (with_product(difference=0.5), "fails wrong-result PyTorch 2.5.1 on GPU 0: "),
        (with_product(difference=float("nan")), "fails wrong-result PyTorch 2.5.1 on GPU 0: "),
        (with_product(place={"answer": 1, "on_device": False}), "fails result-not-on-gpu PyTorch 2.5.1 on GPU 0: the"),
        (with_product(place=None, used_before=[0, 0], used_after=[0, 1]), "fails result-not-on-gpu PyTorch"),
        (with_product(place=None, used_before=[0, 0], used_after=[0, 9 << 20]), "computed 1 PyTorch 2.5.1 computed on"),
        (with_product(place=None), "computed 1 PyTorch 2.5.1 computed on"),
    ],
)
def test_gate_judges_a_framework(changed: dict[str, Any], answer: str) -> None:
    said = judged("PyTorch", {**FACTS, **changed})
    assert said.startswith(answer)
    assert said.split()[0] == "computed" or said.split()[1] in explanations()


def test_gate_has_the_limits_of_check_gpu() -> None:
    assert (TOLERANCE, GROWN) == (_TOLERANCE, _GROWN)


@pytest.mark.parametrize("name", checkable())
def test_gate_text_of_each_framework_answers_in_one_line(name: str) -> None:
    """In a Python without the framework: it cannot be imported."""
    argv = [sys.executable, "-S", "-I", "-c", gate_script(name, "The framework")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    stage, answer = filter(None, done.stdout.splitlines())
    assert stage == "ctk-stage: 1001 start import"
    assert answer.startswith("ctk-gate: fails framework-import-fails The framework cannot be imported: Module")
