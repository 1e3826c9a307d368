"""The audit on a table of released wheels, 2018 to 2026: it must say of each set what `wheel_sets.toml` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gpu.wheel_sets import WheelSet, reduced, wheel_sets
from tests.inventory.making import fill, python_files
from toolkit.gpu.audit import judge_image
from toolkit.gpu.compatibility import parse_gpu
from toolkit.gpu.facts import TargetMachine
from toolkit.gpu.gather import gather_image_facts
from toolkit.inventory.formats.images import open_image
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

SETS = wheel_sets()
# The numbers of a CUDA release's sonames, as NVIDIA's packages for Ubuntu and RHEL have them.
LIBRARIES = "cudart cublas cublasLt cufft curand cusolver cusparse nvrtc"
NUMBERS = {
    "13": "13 13 13 12 10 12 12 13", "12": "12 12 12 11 10 11 12 12", "11": "11.0 11 11 10 10 11 11 11.2",
    "11.0": "11.0 11 11 10 10 10 11 11.0", "10.2": "10.2 10 10 10 10 10 10 10.2", "10.1": "10.1 10 10 10 10 10 10 10.1",
}  # fmt: skip
CUDNN_PARTS = {
    "8": "_adv_infer _adv_train _cnn_infer _cnn_train _ops_infer _ops_train",
    "9": "_adv _cnn _engines_precompiled _engines_runtime_compiled _graph _heuristic _ops",
}  # fmt: skip


def toolkit(cuda: str, cudnn: str) -> dict[str, str | bytes]:
    """A CUDA toolkit in /usr/local/cuda, as NVIDIA's base images have it."""
    numbers = NUMBERS.get(cuda) or NUMBERS.get(cuda.partition(".")[0]) or f"{cuda} " * 8  # libcublas.so.9.0
    sonames = [f"lib{name}.so.{number}" for name, number in zip(LIBRARIES.split(), numbers.split(), strict=True)]
    sonames += [f"libcudnn{part}.so.{cudnn}" for part in ("", *CUDNN_PARTS.get(cudnn, "").split())]
    files: dict[str, str | bytes] = {f"usr/local/cuda/lib64/{name}": "" for name in sonames}
    return files | {".singularity.d/env/10-docker2singularity.sh": "export LD_LIBRARY_PATH=/usr/local/cuda/lib64\n"}


@pytest.mark.parametrize("one", SETS, ids=str)
def test_verdict_of_released_wheels(tmp_path: Path, one: WheelSet) -> None:
    sets, wheels = reduced()
    site = f"usr/local/lib/python{one.python}/site-packages"
    fill(tmp_path, python_files(one.python) | (toolkit(one.cuda, one.cudnn) if one.cuda else {}))
    for name in sets[one.key]:
        fill(tmp_path / site, wheels[name].files())
    with open_image(tmp_path) as rootfs:
        facts = gather_image_facts(rootfs)
    found = judge_image(facts, TargetMachine())
    said = [f"{finding.code}: {finding.message}" for finding in found.findings if finding.severity is not Severity.INFO]
    assert found.verdict.value == one.verdict, said
    assert sorted({line.partition(":")[0] for line in said}) == sorted(one.codes), said
    if one.built:
        assert {framework.build.cuda for framework in facts.frameworks if framework.build.gpu} == {one.built}
    for gpu in (*one.runs_on, *one.not_on):
        judged = judge_image(facts, TargetMachine(gpu=gpu, capability=parse_gpu(gpu)))
        assert any(finding.code == "gpu-not-covered" for finding in judged.findings) is (gpu in one.not_on), gpu


def test_the_table_holds_a_hundred_sets() -> None:
    sets, wheels = reduced()
    assert len(SETS) >= 100
    assert set(sets) == {one.key for one in SETS}
    assert {name for names in sets.values() for name in names} == set(wheels)
