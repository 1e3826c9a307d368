"""The protected set, from plain inventories and the data of the real frameworks."""

from __future__ import annotations

from dataclasses import replace

from tests.pins.python_targets import OLD, TENSORFLOW, TORCH, distribution, target
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.target import recorded_target
from toolkit.pins.lock.protected import other_builds, protect, second_frameworks, violations
from toolkit.pins.resolver.constraints import hard_constraints
from toolkit.recipes.model import Base


def pins(base: object) -> dict[str, str]:
    return {pin.name: pin.version for pin in protect(base, knowledge()).pins}  # type: ignore[arg-type]


def lines(base: object) -> set[str]:
    return {constraint.line for constraint in hard_constraints(base, protect(base, knowledge()))}  # type: ignore[arg-type]


def test_framework_gpu_libraries_and_tied_packages_are_pinned() -> None:
    assert pins(TENSORFLOW) == {"keras": "2.15.0", "tensorboard": "2.15.2", "tensorflow": "2.15.1"}
    assert pins(TORCH) == {"torch": "2.5.1+cu124", "triton": "3.1.0", "nvidia-cudnn-cu12": "9.1.0.70"}


def test_a_base_without_a_framework_protects_nothing() -> None:
    plain = target(distribution("numpy", "2.1.2"), distribution("keras", "3.0"))
    assert protect(plain, knowledge()).pins == ()
    assert hard_constraints(plain, protect(plain, knowledge())) == ()


def test_conflicting_variants_are_found_in_plan() -> None:
    cupy = target(distribution("cupy-cuda12x", "13.3.0"))
    found = violations(cupy, protect(cupy, knowledge()), knowledge(), {"cupy-cuda11x": "13.3.0"})
    assert len(found) == 1
    assert "cupy-cuda12x 13.3.0" in found[0]
    cudnn = violations(TORCH, protect(TORCH, knowledge()), knowledge(), {"nvidia-cudnn-cu13": "9.28.0.42"})
    assert "the base has cuDNN as nvidia-cudnn-cu12" in cudnn[0]
    assert violations(TORCH, protect(TORCH, knowledge()), knowledge(), {"nvidia-cublas-cu13": "13.0"}) == []
    both = {"opencv-python": "4.9", "opencv-python-headless": "4.9"}
    assert "install cv2" in violations(TORCH, protect(TORCH, knowledge()), knowledge(), both)[0]
    assert violations(TORCH, protect(TORCH, knowledge()), knowledge(), {"timm": "1.0"}) == []


def test_replaced_variant_is_not_in_plan() -> None:
    alias = replace(TORCH, aliases=frozenset({"opencv-python"}))
    alias = replace(alias, installed={**TORCH.installed, "opencv-python": distribution("opencv-python", "4.9")})
    assert violations(alias, protect(TORCH, knowledge()), knowledge(), {"opencv-python-headless": "4.9"}) == []


def test_an_import_that_metadata_allows_and_the_framework_refuses_is_found_in_a_plan() -> None:
    found = violations(OLD, protect(OLD, knowledge()), knowledge(), {"keras": "2.4.3"})
    assert any("refuses TensorFlow older than 2.2" in line for line in found)


def test_package_incompatible_with_protected_version_is_excluded() -> None:
    assert {"keras-hub>=0.19", "keras-nlp<0.14"} <= lines(TENSORFLOW)
    assert not any(line.startswith("keras-hub") for line in lines(TORCH))
    bare = target(distribution("tensorflow-cpu", "2.14.0"))
    assert "numpy<2" in lines(bare)
    base = Base("x", "docker", "a/b:1", python="3.11", framework="tensorflow", framework_version="2.15.0")
    assert {"keras==2.15.*", "keras-hub>=0.19"} <= lines(recorded_target(base, "x86_64"))


def test_recorded_base_protects_recorded_packages() -> None:
    base = Base("x", "docker", "a/b:1", python="3.11", framework="tensorflow", framework_version="2.15.0")
    recorded = recorded_target(base, "x86_64")
    assert recorded is not None
    assert recorded.recorded
    assert pins(recorded) == {"tensorflow": "2.15.0"}
    assert recorded_target(Base("x", "docker", "a/b:1"), "x86_64") is None


def test_companion_for_other_build_is_reported() -> None:
    protected = protect(TORCH, knowledge())
    (note,) = other_builds(protected, knowledge(), {"torchvision": "0.20.1", "timm": "1.0"})
    assert "torchvision 0.20.1" in note
    assert "torch 2.5.1+cu124" in note
    assert other_builds(protected, knowledge(), {"torchvision": "0.20.1+cu124"}) == []
    assert other_builds(protect(TENSORFLOW, knowledge()), knowledge(), {"tf-keras": "2.15.0"}) == []


def test_second_framework_is_reported_with_requirer() -> None:
    by = {"tensorflow": ("gpflow",), "jax": ("recipe",)}
    found = second_frameworks(TORCH, knowledge(), {"tensorflow": "2.21.0", "numpy": "2.1.2", "onnxruntime": "1"}, by)
    assert found == ["tensorflow 2.21.0 (for gpflow) is a second GPU framework next to PyTorch of the base"]
    assert second_frameworks(TORCH, knowledge(), {"tensorflow-cpu": "2.21.0"}, by) == []
    assert second_frameworks(target(distribution("pip", "24")), knowledge(), {"jax": "0.4.35"}, by) == []


def test_overwriting_variants_are_reported_with_requirers() -> None:
    added = {"cupy-cuda11x": "13.3.0", "cupy-cuda12x": "13.3.0"}
    (found,) = violations(TORCH, protect(TORCH, knowledge()), knowledge(), added, {"cupy-cuda12x": ("spacy",)})
    assert found.startswith("cupy-cuda11x and cupy-cuda12x (for spacy) both install cupy")
