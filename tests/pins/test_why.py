"""Why a package is in an image."""

from __future__ import annotations

from dataclasses import replace

from tests.pins.locks import SHA, SMALL, WHEEL
from toolkit.pins.lock.model import Displaced, LockedPackage
from toolkit.pins.lock.protected import Ban
from toolkit.pins.why import way_to_recipe, why


def test_why_explains_each_role_of_a_package() -> None:
    chain = replace(
        SMALL,
        packages=(
            *SMALL.packages,
            LockedPackage("huggingface-hub", "1", "h.whl", SHA, required_by=("timm", "loop")),
            LockedPackage("httpx", "1", "x.whl", SHA, required_by=("huggingface-hub",), replaces="0.9"),
            LockedPackage("loop", "1", "l.whl", SHA, required_by=("huggingface-hub",)),
        ),
    )
    assert why(chain, "Torch")[0] == "torch 2.5.1+cu124 is protected (the base's PyTorch) and must not change."
    assert why(chain, "httpx") == (
        "httpx 1 is added: httpx ← huggingface-hub ← timm ← the recipe.",
        "It replaces the base's 0.9.",
    )
    assert why(chain, "timm")[1] == "It is not 1.1: newer ones need torch>=3."
    assert "cannot be installed" in why(chain, "tf_nightly")[0]
    assert "Only torchvision ==0.20.*" in why(chain, "torchvision")[0]
    assert why(chain, "flask") == ()
    unexplained = replace(SMALL, packages=(replace(WHEEL, required_by=()),))
    assert way_to_recipe(unexplained, "timm") == []
    assert why(unexplained, "timm")[0] == "timm 1.0.3 is added."


def test_why_tells_which_version_it_should_be() -> None:
    displaced = Displaced("timm", ("0.9", "0.8"), "it has no wheel")
    before = replace(SMALL, displaced=(displaced,))
    assert why(before, "timm")[-1] == "It is not 0.9, which it was before: it has no wheel."
    listed = replace(before, preferred=("timm==0.9",))
    assert why(listed, "timm")[-1] == "It is not 0.9, which the recipe prefers: it has no wheel."
    assert why(replace(listed, packages=(), held=()), "timm") == ()


def test_why_names_replacement_of_package() -> None:
    headless = LockedPackage(
        "opencv-python-headless", "4.10.0.84", "o-1-py3-none-any.whl", SHA, required_by=("recipe",)
    )
    lock = replace(SMALL, packages=(headless,))
    assert why(lock, "opencv-python") == (
        "opencv-python is not installed. opencv-python-headless 4.10.0.84 is used in place of opencv-python: both "
        "install the module cv2. It lacks functions that open a window (cv2.imshow).",
        "opencv-python-headless 4.10.0.84 is added: opencv-python-headless ← the recipe.",
    )
    note = (
        "opencv-python-headless 4.10.0.84 is used in place of opencv-python, required by ultralytics: both install cv2"
    )
    assert why(replace(lock, notes=(note,)), "OpenCV_Python")[0] == f"opencv-python is not installed. {note}."
    assert why(lock, "opencv-contrib-python") == ()


def test_why_names_pattern_that_forbids_package() -> None:
    ban = Ban("cupy-cuda*", "it would overwrite files of cupy-cuda12x")
    banned = replace(SMALL, protected=replace(SMALL.protected, forbidden=(ban,)))
    assert why(banned, "cupy-cuda11x") == (f"cupy-cuda11x cannot be installed: {ban.why}.",)
