"""Which of several distributions of one module stands for the others."""

from __future__ import annotations

import pytest

from tests.pins.python_targets import distribution, target
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.resolver.aliases import Alias, alias_notes, base_aliases, standing

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


def test_vendor_build_has_public_version() -> None:
    base = target(distribution("tensorflow", "2.15.0+nv24.3"), distribution("pip", "24.0"))
    assert Alias("tensorflow-cpu", "tensorflow", "2.15.0") in base_aliases(base, KNOWN)


def test_alias_note_names_requirers() -> None:
    aliases = [Alias("opencv-python", "opencv-python-headless", "4.10.0.84", "windows"), Alias("x", "y", "1")]
    (note,) = alias_notes(aliases, {"opencv-python": ("recipe", "ultralytics")}, KNOWN)
    assert note == (
        "opencv-python-headless 4.10.0.84 is used in place of opencv-python, required by the recipe and ultralytics: "
        "both install the module cv2. It lacks windows. `pip check` reports opencv-python as missing, which is harmless"
    )
