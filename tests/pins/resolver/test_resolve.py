"""The resolver's plan over a base."""

from __future__ import annotations

from tests.pins.python_targets import TENSORFLOW, TORCH, distribution, target
from tests.pins.resolver.test_aliases import KNOWN
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.lock.protected import protect
from toolkit.pins.resolver.aliases import Alias, base_aliases, with_aliases
from toolkit.pins.resolver.constraints import hard_constraints
from toolkit.pins.resolver.resolve import Request, first_question


def test_variant_of_base_counts_as_installed_under_each_served_name() -> None:
    base = target(*TORCH.installed.values(), distribution("opencv-python-headless", "4.10.0.84"))
    aliases = base_aliases(base, KNOWN)
    assert aliases == (
        Alias("opencv-python", "opencv-python-headless", "4.10.0.84", "functions that open a window (cv2.imshow)"),
    )
    request = with_aliases(Request(base, ("ultralytics",), protect(base, KNOWN)), aliases)
    lines = {constraint.line for constraint in hard_constraints(request.target, request.protected)}
    assert {"opencv-python==4.10.0.84", "opencv-contrib-python<0"} <= lines
    assert "opencv-python<0" not in lines
    assert "opencv-python" in first_question(request).target.installed


def test_recorded_base_has_only_aliases_installed() -> None:
    recorded = PythonTarget("3.11", {"tensorflow": distribution("tensorflow", "2.15.0")}, recorded=True)
    request = with_aliases(Request(recorded, ("x",), protect(recorded, KNOWN)), base_aliases(recorded, KNOWN))
    question = first_question(request)
    assert question.packages == ("x", "tensorflow==2.15.0")
    assert "tensorflow-cpu" in question.target.installed
    assert "tensorflow" not in question.target.installed


def test_a_base_without_variants_has_no_aliases() -> None:
    assert base_aliases(TORCH, KNOWN) == ()
    assert {alias.by for alias in base_aliases(TENSORFLOW, KNOWN)} == {"tensorflow"}
    request = Request(TORCH, ("timm",), protect(TORCH, KNOWN))
    assert with_aliases(request, ()) is request
