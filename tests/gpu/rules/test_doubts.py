"""What only running an image's scripts tells is said, and decides no verdict alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.gpu.judged import GPU, PYTHON, TORCH, framework, image
from tests.gpu.judged import audit as judged
from tests.gpu.small_images import SITE, Files, audit, environment, jax, library, torch
from tests.inventory.making import distribution
from toolkit.inventory.contents.model import Uncertain
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.gpu.audit import Audit

STUBS: Files = {
    "usr/local/cuda/lib64/stubs/libcuda.so": b"",
    "usr/local/cuda/lib64/stubs/libcuda.so.1": "-> libcuda.so",
}
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so"


def severities(found: Audit, code: str) -> list[str]:
    return [finding.severity.value for finding in found.findings if finding.code == code]


@pytest.mark.parametrize(
    ("script", "told", "unknown"),
    [
        ("export CUDA_VISIBLE_DEVICES=-1", ["error"], []),
        ('export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-"-1"}"', ["error"], []),
        ('if [ -z "$SLURM_JOB_ID" ]; then export CUDA_VISIBLE_DEVICES=-1; fi', ["warning"], ["info"]),
        ("nvidia-smi || export CUDA_VISIBLE_DEVICES=-1", ["warning"], ["info"]),
        ('case "$1" in cpu) export CUDA_VISIBLE_DEVICES= ;; esac', ["warning"], ["info"]),
        ("export CUDA_VISIBLE_DEVICES=$(cat /etc/devices)", [], ["warning"]),
    ],
)
def test_devices_hidden_in_a_branch_are_a_warning(
    tmp_path: Path, script: str, told: list[str], unknown: list[str]
) -> None:
    found = audit(tmp_path, torch(), environment(script))
    assert severities(found, "gpu-hidden-by-environment") == told
    assert severities(found, "environment-unknown") == unknown
    assert found.verdict is (Verdict.GPU_BROKEN if told == ["error"] else Verdict.GPU_READY)


@pytest.mark.parametrize(("script", "told"), [("{}", "error"), ('if [ "$CPU" ]; then {}; fi', "warning")])
def test_platform_of_jax_that_a_branch_sets_is_a_warning(tmp_path: Path, script: str, told: str) -> None:
    pjrt = distribution("jax-cuda12-pjrt", "0.6.2", SITE, {"jax_plugins/xla_cuda12/xla_cuda_plugin.so": library()})
    parts = {**pjrt, **distribution("jax-cuda12-plugin", "0.6.2", SITE)}
    found = audit(tmp_path, jax(extra=parts), environment(script.format("export JAX_PLATFORMS=cpu")))
    assert severities(found, "gpu-hidden-by-environment") == [told]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (f"export LD_PRELOAD={STUB}", "error"),
        (f'if [ "$BUILD" ]; then export LD_PRELOAD={STUB}; fi', "warning"),
        # The one variable is uncertain, and the other leads to the stub all the same.
        (f"export LD_PRELOAD={STUB}; LD_LIBRARY_PATH=$(cat /etc/path)", "error"),
    ],
)
def test_stub_that_a_branch_preloads_is_a_warning(tmp_path: Path, script: str, told: str) -> None:
    found = audit(tmp_path, torch(), STUBS, environment(script))
    assert severities(found, "stub-libcuda-first") == [told]
    assert found.verdict is (Verdict.GPU_BROKEN if told == "error" else Verdict.GPU_READY)


@pytest.mark.parametrize(("branch", "told"), [(False, "error"), (True, "warning")])
@pytest.mark.parametrize("site", ["opt/more", SITE])
def test_distribution_that_a_branch_puts_on_the_path_is_a_warning(
    tmp_path: Path, branch: bool, told: str, site: str
) -> None:
    """torchvision of another torch: an error wherever it lies for sure, whatever else the branch adds."""
    script = "export PYTHONPATH=/opt/more"
    other = distribution("rich", "13.0", "opt/more")
    files = environment(f'if [ "$X" ]; then {script}; fi' if branch else script)
    found = audit(tmp_path, torch("2.2.2"), distribution("torchvision", "0.15.2", site), other, files)
    assert severities(found, "companion-out-of-step") == ["error" if site == SITE else told]


def test_framework_that_a_branch_puts_on_the_path_breaks_no_verdict(tmp_path: Path) -> None:
    old = {path.replace(SITE, "opt/old"): content for path, content in torch().items() if "/nvidia" not in path}
    old["opt/old/torch-2.5.1.dist-info/WHEEL"] = "Wheel-Version: 1.0\nTag: cp310-cp310-manylinux1_x86_64\n"
    sure = audit(tmp_path / "sure", torch(), old, environment("export PYTHONPATH=/opt/old"))
    assert sure.verdict is Verdict.GPU_BROKEN
    found = audit(tmp_path / "branch", torch(), old, environment("[ -n $X ] && export PYTHONPATH=/opt/old"))
    assert found.verdict is Verdict.GPU_READY
    assert severities(found, "framework-of-other-python") == ["warning"]
    assert severities(found, "environment-unknown") == ["info"]


@pytest.mark.parametrize(
    ("doubt", "verdict"),
    [
        (None, Verdict.GPU_BROKEN),
        (Uncertain("PATH", "90-environment.sh", open=False), Verdict.GPU_READY),
        # What is added to PATH is not known, and what is known is judged as it stands.
        (Uncertain("PATH", "90-environment.sh", open=True), Verdict.GPU_BROKEN),
    ],
)
def test_python_that_a_branch_chooses_breaks_no_verdict(doubt: Uncertain | None, verdict: Verdict) -> None:
    other = replace(PYTHON, path="/opt/tf/bin/python3.11", prefix="/opt/tf", default=False)
    hidden = replace(PYTHON, path="/srv/env/bin/python3.11", prefix="/srv/env", default=False)
    inventory = image(
        environment={"PATH": "/usr/bin:/opt/tf/bin"}, uncertain=(doubt,) if doubt else (),
        interpreters=(PYTHON, other, hidden),
    )  # fmt: skip
    broken = framework("torch", "2.5.1", replace(TORCH, complete=False))
    good = framework("tensorflow", "2.15.1", GPU, by_default=False, interpreter=other.path)
    assert judged(broken, good, inventory=inventory).verdict is verdict
    elsewhere = replace(good, interpreter=hidden.path)
    assert judged(broken, elsewhere, inventory=inventory).verdict is Verdict.GPU_BROKEN
    both = framework("jax", "0.6.2", replace(GPU, complete=False), by_default=False, interpreter=other.path)
    assert judged(broken, good, both, inventory=inventory).verdict is Verdict.GPU_BROKEN
