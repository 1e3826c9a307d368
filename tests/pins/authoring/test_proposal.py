"""Which base is proposed for a list, and what of the list is to be installed into it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.pins.authoring.few_bases import BASES
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.imports import Imports
from toolkit.pins.authoring.proposal import Proposal, propose_from_imports, propose_from_list


def propose(*lines: str, base: str | None = None) -> Proposal:
    return propose_from_list(lines, names(), knowledge(), BASES, base=base)


def codes(proposal: Proposal) -> list[str]:
    return [finding.code for finding in proposal.findings]


@pytest.mark.parametrize(
    ("base", "lines", "packages", "found"),
    [
        ("pytorch-2.6", "jax flax", "jax flax", ["second-framework"]),
        ("debian-12", "torch timm triton", "torch timm triton", ["framework-added"]),
        ("pytorch-2.6", "tensorflow keras triton nvidia-ml-py", "tensorflow keras nvidia-ml-py", ["second-framework"]),
        ("debian-12", "onnxruntime numpy", "onnxruntime numpy", ["framework-added"]),
        ("pytorch-2.6", "torch onnxruntime nvidia-cudnn-cu12", "onnxruntime", []),
        ("chainer-7.8", "chainer cupy numpy", "numpy", []),
        ("pytorch-2.6", "torch==1.9 timm", "timm", ["other-version"]),
        ("tensorflow-2.15", "jaxlib", "jaxlib", []),
    ],
)
def test_chosen_base_replaces_only_its_own_packages(base: str, lines: str, packages: str, found: list[str]) -> None:
    proposal = propose(*lines.split(), base=base)
    assert proposal.base == base
    assert proposal.packages == tuple(packages.split())
    assert codes(proposal) == found


def test_dump_loses_only_the_versions_that_are_tied_to_the_replaced_framework() -> None:
    lines = ("timm==0.9.5", "torch==2.0.1", "torchvision==0.15.2")
    proposal = propose_from_list(lines, names(), knowledge(), BASES, base="pytorch-2.6", dump=True)
    assert proposal.packages == ("timm==0.9.5", "torchvision")
    assert codes(proposal) == ["other-version", "version-left-open"]


def test_framework_without_base_is_installed_into_plain_base() -> None:
    proposal = propose("onnxruntime", "opencv-python-headless")
    assert (proposal.base, proposal.packages) == ("debian-12", ("onnxruntime", "opencv-python-headless"))
    assert codes(proposal) == ["framework-added"]
    assert propose("onnxruntime", "timm").base == "pytorch-2.6"


def test_a_local_version_is_that_version() -> None:
    ours = replace(BASES["pytorch-2.6"], name="ours-2.5", framework_version="2.5.1")
    bases = {**BASES, "ours-2.5": ours}
    assert propose_from_list(["torch==2.5.1+cu121"], names(), knowledge(), bases).base == "ours-2.5"
    proposal = propose(
        "torch==2.6.0+cu124", "torchvision == 0.21.0+cu124 ; python_version > '3'", "x @ https://y/z==1+2"
    )
    assert proposal.base == "pytorch-2.6"
    assert proposal.packages == ("torchvision == 0.21.0 ; python_version > '3'", "x @ https://y/z==1+2")
    assert codes(proposal) == []


@pytest.mark.parametrize(
    ("lines", "base"),
    [
        ("flax transformers", "jax-24.10"),
        ("transformers", "pytorch-2.6"),
        ("keras", "tensorflow-2.15"),
        ("keras torchvision", "pytorch-2.6"),
        ("keras flax", "jax-24.10"),
    ],
)
def test_a_companion_of_one_framework_counts_for_more_than_one_of_several(lines: str, base: str) -> None:
    assert propose(*lines.split()).base == base


@pytest.mark.parametrize(
    ("required", "optional", "base", "more"),
    [
        ([], ["torch", "timm"], "pytorch-2.6", ["timm"]),
        ([], ["timm"], "debian-12", ["timm"]),
        (["flax"], ["torch"], "jax-24.10", ["torch"]),
    ],
)
def test_a_framework_that_is_optional_chooses_the_base_where_nothing_else_does(
    required: list[str], optional: list[str], base: str, more: list[str]
) -> None:
    found = Imports(dict.fromkeys(required, "a.py:1"), dict.fromkeys(optional, "a.py:2"), {})
    proposal = propose_from_imports(found, names(), knowledge(), BASES)
    assert proposal.base == base
    assert [finding.message for finding in proposal.findings] == [f"used only if installed: {', '.join(more)}"]
