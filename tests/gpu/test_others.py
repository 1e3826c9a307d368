"""Programs for GPUs that are no framework: named with what their files tell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.gpu.judged import on
from tests.gpu.small_images import SITE, Files, torch
from tests.inventory.making import distribution, fill, python_files
from tests.real.wheels import elf
from toolkit.gpu.audit import Audit, audit_image
from toolkit.gpu.facts import TargetMachine
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path

XGBOOST = elf([], "", False, "", compiled="sm_75 sm_80 compute_120 sm_120")
PLAIN = elf([], "", False, "")


def audit(root: Path, files: Files, target: TargetMachine | None = None) -> Audit:
    return audit_image(fill(root, files), target or TargetMachine())


def messages(found: Audit, code: str = "gpu-software") -> list[str]:
    return [finding.message for finding in found.findings if finding.code == code]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (distribution("xgboost", "3.4.1", SITE, {"xgboost/lib/libxgboost.so": XGBOOST}),
         f"XGBoost 3.4.1 is in /{SITE}: it has code for sm_75 sm_80 compute_120 sm_120."),
        (distribution("xgboost", "2.0.0", SITE, {"xgboost/lib/libxgboost.so": PLAIN}), "it has no CUDA code"),
        (distribution("xgboost-cpu", "3.4.1", SITE, {"xgboost/lib/libxgboost.so": PLAIN}), "it has no CUDA code"),
        (distribution("lightgbm", "4.7.0", SITE, {"lightgbm/lib/lib_lightgbm.so": PLAIN}), "uses OpenCL"),
    ],
)  # fmt: skip
def test_distribution_that_is_no_framework_is_described(tmp_path: Path, files: Files, said: str) -> None:
    found = audit(tmp_path, {**python_files(), **files})
    assert found.verdict is Verdict.NO_FRAMEWORK
    (message,) = messages(found)
    assert said in message
    assert str(found.facts.others[0]) in messages(found, "no-framework")[0]


@pytest.mark.parametrize(
    ("files", "title", "said"),
    [
        ({"usr/local/lib/R/site-library/torch/DESCRIPTION": "Package: torch\nVersion: 0.13.0\n",
          "usr/local/lib/R/site-library/torch/lib/libtorch_cuda.so": elf([], "", False, "", compiled="sm_80 sm_90")},
         "torch for R 0.13.0", "code for sm_80 sm_90"),
        ({"usr/lib/R/site-library/torch/DESCRIPTION": "Package: torch\nVersion: 0.13.0\n",
          "usr/lib/R/site-library/torch/lib/libtorch_cpu.so": PLAIN}, "torch for R 0.13.0", "no CUDA code"),
        ({"opt/libtorch/build-version": "2.5.1+cu124\n", "opt/libtorch/lib/libtorch_cuda.so": PLAIN},
         "libtorch 2.5.1+cu124", "it is built with CUDA"),
        ({"opt/depot/packages/CUDA/Tl08O/Project.toml": 'name = "CUDA"\nversion = "5.5.2"\n',
          ".singularity.d/env/90-environment.sh": "export JULIA_DEPOT_PATH=/opt/depot\n"},
         "CUDA.jl 5.5.2", "an artifact"),
    ],
)  # fmt: skip
def test_installation_without_python_is_described(tmp_path: Path, files: Files, title: str, said: str) -> None:
    found = audit(tmp_path, {"etc/os-release": "ID=debian\n", **files})
    assert found.verdict is Verdict.NO_FRAMEWORK
    (message,) = messages(found)
    assert message.startswith(f"{title} is in /")
    assert said in message
    assert f"It has {title}" in messages(found, "no-framework")[0]


def test_its_code_is_compared_with_the_gpu_and_breaks_no_framework(tmp_path: Path) -> None:
    xgboost = distribution("xgboost", "3.4.1", SITE, {"xgboost/lib/libxgboost.so": XGBOOST})
    image = {**python_files(), **torch(), **xgboost}
    found = audit(tmp_path, image, on("V100", "535.104.05"))
    assert found.verdict is Verdict.GPU_READY
    assert "XGBoost 3.4.1 does not run on V100" in messages(found, "gpu-not-covered")[0]
    assert not messages(audit_image(tmp_path, on("A100", "535.104.05")), "gpu-not-covered")


@pytest.mark.parametrize(
    ("site", "mode", "told"),
    [
        ("root/.local/lib/python3.11/site-packages", 0o700, True),
        ("root/.local/lib/python3.11/site-packages", 0o755, True),
        ("root/venv/lib/python3.11/site-packages", 0o700, True),
        ("root/venv/lib/python3.11/site-packages", 0o755, False),
        ("opt/venv/lib/python3.11/site-packages", 0o700, False),
    ],
)
def test_framework_that_only_root_sees(tmp_path: Path, site: str, mode: int, told: bool) -> None:
    fill(
        tmp_path,
        {**python_files(), "root/": "", **distribution("torch", "2.5.1", site), **distribution("six", "1.0", site)},
    )
    (tmp_path / "root").chmod(mode)
    found = messages(audit_image(tmp_path, TargetMachine()), "packages-of-root")
    assert [f"/{site} has torch 2.5.1, which only root sees" in message for message in found] == [True] * told


def test_directories_of_another_user_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"opt/R/": "", "root/": "", "opt/libtorch/": "", ".singularity.d/runscript": "exec /root/venv/bin/python\n"}
    fill(tmp_path, {**python_files(), **files})
    closed = tuple(str(tmp_path / name) for name in ("opt/R", "root", "opt/libtorch"))
    (tmp_path / "root").chmod(0o700)
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path) in closed:
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = audit_image(tmp_path, TargetMachine())
    assert (found.verdict, found.facts.others, found.facts.program) == (Verdict.NO_FRAMEWORK, (), None)
