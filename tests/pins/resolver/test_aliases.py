"""Which of several distributions of one module stands for the others."""

from __future__ import annotations

import pytest

from tests.pins.python_targets import TENSORFLOW, TORCH, distribution, target
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.lock.protected import protect
from toolkit.pins.resolver.aliases import Alias, alias_notes, base_aliases, standing, with_aliases
from toolkit.pins.resolver.constraints import hard_constraints
from toolkit.pins.resolver.resolve import Request, first_question

KNOWN = knowledge()


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ("opencv-python opencv-python-headless", "opencv-python-headless"),
        ("opencv-contrib-python opencv-python", "opencv-contrib-python-headless"),
        ("opencv-contrib-python opencv-python-headless", "opencv-contrib-python-headless"),
        ("pillow pillow-simd", "pillow"),
        ("psycopg2 psycopg2-binary", "psycopg2-binary"),
        ("onnxruntime onnxruntime-gpu", "onnxruntime-gpu"),
        ("tensorflow tensorflow-cpu", "tensorflow"),
        ("faiss-cpu faiss-gpu-cu12", "faiss-gpu-cu12"),
        ("cupy cupy-cuda12x", "cupy-cuda12x"),
        ("mmcv-full mmcv", "mmcv-full"),
        ("cupy-cuda11x cupy-cuda12x", None),
        ("nvidia-cudnn-cu12 nvidia-cudnn-cu13", None),
    ],
)
def test_the_variant_that_serves_all_is_chosen(asked: str, chosen: str | None) -> None:
    members = asked.split()
    group = KNOWN.variants_of(members[0])
    assert group is not None
    assert next(iter(standing(group, members)), None) == chosen


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


def test_vendor_build_has_public_version() -> None:
    base = target(distribution("tensorflow", "2.15.0+nv24.3"), distribution("pip", "24.0"))
    assert Alias("tensorflow-cpu", "tensorflow", "2.15.0") in base_aliases(base, KNOWN)


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


def test_alias_note_names_requirers() -> None:
    aliases = [Alias("opencv-python", "opencv-python-headless", "4.10.0.84", "windows"), Alias("x", "y", "1")]
    (note,) = alias_notes(aliases, {"opencv-python": ("recipe", "ultralytics")}, KNOWN)
    assert note == (
        "opencv-python-headless 4.10.0.84 is used in place of opencv-python, required by the recipe and ultralytics: "
        "both install the module cv2. It lacks windows. `pip check` reports opencv-python as missing, which is harmless"
    )
