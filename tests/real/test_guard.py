"""The guard in real builds over a base with a real PyTorch: whatever a recipe does, the framework stays."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.real.conftest import QUIET
from tests.real.frameworks import ATTACKS, BY_WHEEL, SITE, FrameworkBase, attack, build, digest_of, framework_base

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

OTHER = "2.12.1"


@pytest.fixture(scope="module")
def torch_wheel(scratch: Path) -> Path:
    """A real torch: the CPU build where this machine's pip knows of one, for a third of the size."""
    directory = scratch / "torch-wheel"
    download = [sys.executable, "-m", "pip", "download", *QUIET, "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*download, "--python-version", "3.11", "-d", str(directory), "torch==2.13.0"], check=True)
    return next(directory.glob("torch-*.whl"))


@pytest.fixture(scope="module")
def torch_base(builder: User, scratch: Path, base_image: Path, torch_wheel: Path) -> FrameworkBase:
    """Debian with torch and all that it requires."""
    wheel = f"/mnt/{torch_wheel.name}"
    return framework_base(builder, scratch, base_image, "torch", wheel, "numpy", bind=torch_wheel.parent)


@pytest.fixture(scope="module")
def torch_version(torch_wheel: Path) -> str:
    return torch_wheel.name.split("-")[1]


def test_companions_come_and_the_framework_stays_though_a_script_upgrades_it(
    builder: User, work: Path, torch_base: FrameworkBase
) -> None:
    names = ["torchvision", "timm", "accelerate", "torchmetrics", "einops", "pandas", "scikit-learn"]
    names += ["transformers", "matplotlib", "seaborn", "sentencepiece"]
    # Not torchvision and what imports it: the index has it for its own CUDA build of torch, this base's may be another.
    skip = ["torchvision", "timm", "torchmetrics", "transformers"]
    text = (
        f'packages = {json.dumps(names)}\npost = "pip install --upgrade torch"\n[imports]\nskip = {json.dumps(skip)}\n'
    )
    build(builder, work, torch_base, text, 0)
    assert digest_of(work / "out" / SITE / "torch") == torch_base.digest
    found = {path.name.partition("-")[0] for path in (work / "out" / SITE).glob("*.dist-info")}
    assert {"torchvision", "timm", "accelerate", "torch"} <= found
    assert len(list((work / "out" / SITE).glob("torch-*.dist-info"))) == 1
    code = "import torch, accelerate, einops, pandas, sklearn, transformers, matplotlib, seaborn, sentencepiece"
    code += ", huggingface_hub, safetensors, scipy; print('all')"
    assert builder.ctk("run", "out/", "--", "python3", "-c", code, cwd=work).stdout.endswith("all\n")


@pytest.mark.parametrize("post", [post for post in ATTACKS if post != BY_WHEEL])
def test_what_would_change_the_framework_ends_the_build(
    builder: User, work: Path, torch_base: FrameworkBase, torch_version: str, post: str
) -> None:
    attack(builder, work, torch_base, post, NAME="torch", VERSION=torch_version, OTHER=OTHER)
