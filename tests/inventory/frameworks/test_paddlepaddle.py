"""PaddlePaddle, from its real wheels (reduced, `tests/data/wheel_sets.toml`): audited, protected, and proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.test_wheel_sets import toolkit
from tests.gpu.wheel_sets import reduced
from tests.inventory.making import fill, python_files
from tests.pins.python_targets import distribution, target
from toolkit.gpu.audit import Audit, audit_image
from toolkit.gpu.facts import TargetMachine
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.imports import scan_imports
from toolkit.pins.authoring.proposal import propose_from_imports, propose_from_list
from toolkit.pins.lock.protected import protect, second_frameworks, violations
from toolkit.recipes.bases import bases_in
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from pathlib import Path

SITE = "usr/local/lib/python3.10/site-packages"
GPU, CPU = "paddlepaddle-gpu==2.6.2 on 3.10", "paddlepaddle==2.6.2 on 3.10"
BASES = bases_in(shipped("defs"))
NAMES = ("cublas", "cublasLt", "cudnn", "curand", "cusolver", "cusparse", "cufft", "nvrtc")


def audit(root: Path, *keys: str, files: dict[str, str | bytes] | None = None) -> Audit:
    sets, wheels = reduced()
    fill(root, {**python_files("3.10"), **(files or {})})
    for key in keys:
        for name in sets[key]:
            fill(root / SITE, wheels[name].files())
    return audit_image(root, TargetMachine())


def codes(found: Audit) -> set[str]:
    return {one.code for one in found.findings}


@pytest.mark.parametrize("key", [GPU, "paddlepaddle-gpu==2.5.2 on 3.10"])
def test_the_wheel_runs_where_cuda_s_libraries_have_names_without_a_version(tmp_path: Path, key: str) -> None:
    """As in NVIDIA's images with `devel` in their tag."""
    libraries = toolkit("11.8", "8")
    paths = {name: next(path for path in libraries if f"/lib{name}.so." in path) for name in NAMES}
    links = {f"{path.partition('.so')[0]}.so": f"-> {path.rpartition('/')[2]}" for path in paths.values()}
    found = audit(tmp_path, key, files={**libraries, **links})
    assert found.verdict.value == "gpu-ready", found.findings
    build = found.frameworks[0].facts.build
    assert (build.cuda, build.cudnn) == ("11.8", "8.6.0")
    assert {"sm_70", "sm_75", "sm_80"} <= set(build.architectures)
    assert {one.want.soname for one in found.frameworks[0].facts.libraries} >= {f"lib{name}.so" for name in NAMES}


def test_without_them_the_audit_says_what_is_there_and_what_helps(tmp_path: Path) -> None:
    found = audit(tmp_path, GPU, files=toolkit("11.8", "8"))
    finding = next(one for one in found.findings if one.code == "wrong-cuda-library")
    assert "libcudnn.so, but the image holds libcudnn.so.8" in finding.message
    assert "`devel` in its tag" in str(finding.fix)


def test_a_build_that_takes_cuda_from_nvidia_s_wheels_is_not_judged_by_those_names(tmp_path: Path) -> None:
    version = f"{SITE}/paddle/version/__init__.py"
    audit(tmp_path, GPU)
    fill(tmp_path, {version: (tmp_path / version).read_text() + "with_pip_cuda_libraries = 'ON'\n"})
    assert audit_image(tmp_path, TargetMachine()).verdict.value == "gpu-ready"


def test_files_that_are_missing_are_told(tmp_path: Path) -> None:
    audit(tmp_path, GPU)
    (tmp_path / SITE / "paddle/base/libpaddle.so").unlink()
    assert "framework-incomplete" in codes(audit_image(tmp_path, TargetMachine()))
    (tmp_path / SITE / "paddle/version/__init__.py").unlink()
    assert "framework-incomplete" in codes(audit_image(tmp_path, TargetMachine()))


def test_both_variants_in_one_image_overwrite_each_other(tmp_path: Path) -> None:
    found = audit(tmp_path, GPU, CPU)
    assert "duplicate-framework" in codes(found)
    assert found.verdict.value == "gpu-broken"


def test_a_base_s_framework_is_protected_and_its_other_variant_kept_out() -> None:
    base = target(distribution("paddlepaddle-gpu", "2.6.2"), distribution("numpy", "1.26.4"))
    protected = protect(base, knowledge())
    assert [pin.name for pin in protected.pins] == ["paddlepaddle-gpu"]
    (refused,) = violations(base, protected, knowledge(), {"paddlepaddle": "3.3.1"}, {"paddlepaddle": ("paddlex",)})
    assert "the base has PaddlePaddle as paddlepaddle-gpu 2.6.2" in refused
    torch = target(distribution("torch", "2.5.1"))
    assert second_frameworks(torch, knowledge(), {"paddlepaddle-gpu": "2.6.2"}, {"paddlepaddle-gpu": ("recipe",)})


def test_new_takes_the_variant_for_the_gpu(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import numpy\nimport paddle\n\npaddle.nn.Linear(1, 1)\n")
    proposal = propose_from_imports(scan_imports(script), names(), knowledge(), BASES)
    assert (proposal.base, proposal.packages) == ("debian-12", ("numpy", "paddlepaddle-gpu"))
    assert proposal.uses_gpu
    assert [one.code for one in proposal.findings] == ["framework-added"]
    listed = propose_from_list(["paddlepaddle==2.6.2"], names(), knowledge(), BASES)
    assert (listed.packages, listed.uses_gpu) == (("paddlepaddle==2.6.2",), False)
