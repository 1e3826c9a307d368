"""`ctk audit`, `ctk explain` and `ctk diff` as a user meets them: words, exit statuses, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import SITE, TORCH, document
from tests.inventory.making import distribution, fill, python_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk


def test_an_audit_in_words(ctk: Ctk, sandbox: Path) -> None:
    done = ctk("audit", sandbox, "--packages", status=1)
    assert "PyTorch\t2.13.0+cpu\tCPU\t/usr/local/bin/python3.11\tcpu-only" in done.stdout
    assert f"torch\t2.13.0+cpu\t/{SITE}" in done.stdout
    assert done.stdout.endswith("Verdict: cpu-only\n")
    assert done.stderr == ""


def test_an_audit_as_json(ctk: Ctk, sandbox: Path) -> None:
    found = document(ctk, "audit", sandbox)
    assert found["schema"] == "ctk.audit/1"
    assert found["verdict"] == "cpu-only"
    assert found["frameworks"][0]["name"] == "torch"
    assert found["findings"][0].keys() == {"code", "severity", "message", "fix"}


def test_processor_and_amd_gpu_of_the_nodes(ctk: Ctk, tmp_path: Path) -> None:
    version = {"torch/version.py": "__version__ = '2.8.0+rocm6.4'\ncuda = None\nhip = '6.4.4'\n"}
    package = {**version, "torch/__init__.py": "", "torch/lib/libtorch_hip.so": b""}
    image = fill(tmp_path / "image", {**python_files(), **distribution("torch", "2.8.0+rocm6.4", SITE, package)})
    assert "PyTorch\t2.8.0+rocm6.4\tROCm 6.4.4" in ctk("audit", image).stdout
    assert "Verdict: gpu-ready" in ctk("audit", image, "--gpu", "MI300X").stdout
    refused = ctk("audit", image, "--gpu", "A100", status=1).stdout
    assert "does not run on A100 (compute capability 8.0): it is for AMD GPUs" in refused
    assert "exists only beside an Arm" in ctk("audit", image, "--gpu", "GH200", "--arch", "x86_64", status=2).stderr
    assert "not an architecture" in ctk("audit", image, "--arch", "sparc", status=2).stderr


def test_audit_of_a_framework_off_path_shows_how_to_call_it(ctk: Ctk, tmp_path: Path) -> None:
    python = "/workspace/proj/.venv/bin/python"
    site = "workspace/proj/.venv/lib/python3.11/site-packages"
    image = fill(tmp_path / "image", {
        **python_files(), **distribution("torch", "2.13.0+cpu", site, {**TORCH, "torch/__init__.py": ""}),
        "workspace/proj/.venv/pyvenv.cfg": "home = /usr/local/bin\n", python[1:]: "-> /usr/local/bin/python3.11",
    })  # fmt: skip
    found = document(ctk, "audit", image)
    assert found["verdict"] == "cpu-only"
    assert found["frameworks"][0]["default"] is False
    assert found["frameworks"][0]["command"] == ["ctk", "run", str(image), python]
    assert f"ctk run {image} {python} SCRIPT" in ctk("audit", image, status=1).stdout


def test_a_verdict_that_is_allowed_is_success(ctk: Ctk, sandbox: Path) -> None:
    ctk("audit", sandbox, "--allow", "cpu-only")
    ctk("audit", sandbox, "--allow", "no-framework", status=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--driver", "12.4"), "not an NVIDIA driver version"),
        (("--gpu", "V10"), "Near matches: V100"),
        (("--allow", "fine"), "fine"),
    ],
)
def test_what_nobody_can_judge(ctk: Ctk, sandbox: Path, arguments: tuple[str, ...], words: str) -> None:
    done = ctk("audit", sandbox, *arguments, status=2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("audit",), ("diff", "/")])
def test_an_image_that_cannot_be_read(ctk: Ctk, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "x.sif").write_bytes(b"hello")
    done = ctk(*command, tmp_path / "x.sif", status=2)
    assert done.stderr.count("\n") == 1
    assert "neither SIF nor squashfs" in done.stderr


def test_a_bill_of_materials_replaces_an_earlier_one_and_nothing_else(ctk: Ctk, sandbox: Path) -> None:
    mine = sandbox.parent / "notes.txt"
    mine.write_text("mine")
    assert "is not a bill of materials" in ctk("audit", sandbox, "--sbom", mine, status=2).stderr
    assert mine.read_text() == "mine"
    bill = sandbox.parent / "bill.json"
    for _ in ("new", "again"):
        assert "Error" not in ctk("audit", sandbox, "--sbom", bill, status=None).stderr
    assert "CycloneDX" in bill.read_text()
    done = ctk("audit", sandbox, "--sbom", "/nowhere/bill.json", status=2)
    assert "/nowhere" in done.stderr
