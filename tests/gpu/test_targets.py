"""Judging for a machine: its driver, its GPU, and a libcuda of the image's own that comes before the driver's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.gpu.judged import CU124, TENSORFLOW, TORCH, audit, codes, framework, image
from toolkit.inventory.contents.model import Uncertain
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("unknown", "severity"), [(True, "warning"), (False, "error"), (None, "error")])
def test_an_unknown_path_decides_no_verdict_alone(unknown: bool | None, severity: str) -> None:
    from toolkit.gpu.facts import Loaded
    from toolkit.inventory.knowledge.builds import Want

    doubts = () if unknown is None else (Uncertain("LD_LIBRARY_PATH", "90-environment.sh", open=unknown),)
    lost = (Loaded(Want("libcudart.so.12", "x"), None),)
    found = audit(framework("tensorflow", "2.15.1", TENSORFLOW, lacking=lost), inventory=image(uncertain=doubts))
    assert [one.severity.value for one in found.findings if one.code == "missing-cuda-library"] == [severity]
    assert found.verdict is (Verdict.GPU_READY if unknown else Verdict.GPU_BROKEN)
    assert ("environment-unknown" in codes(found)) is bool(doubts)


@pytest.mark.parametrize("certain", [True, False])
def test_a_stub_in_a_branch_is_a_warning(certain: bool) -> None:
    doubts = () if certain else (Uncertain("LD_LIBRARY_PATH", "90-environment.sh", open=False),)
    found = audit(
        framework("torch", "2.5.1", CU124), inventory=image(uncertain=doubts),
        drivers=(("/usr/local/cuda/lib64/stubs/libcuda.so.1", "LD_LIBRARY_PATH"),),
    )  # fmt: skip
    assert found.verdict is (Verdict.GPU_BROKEN if certain else Verdict.GPU_READY)


@pytest.mark.parametrize(
    ("torch", "vision", "broken"),
    [
        ("2.5.0a0+872d972e41.nv24.8", "0.20.0a0", False), ("2.6.0a0+df5bbc09d1.nv24.12", "0.20.0a0", False),
        ("2.6.0a0+df5bbc09d1.nv24.12", "0.20.1", True), ("2.6.0", "0.20.0a0", True), ("2.5.1", "0.21.0", True),
    ],
)  # fmt: skip
def test_a_vendors_prereleases_belong_together(torch: str, vision: str, broken: bool) -> None:
    from tests.gpu.judged import dist

    found = audit(framework("torch", torch, replace(TORCH, version=torch), dist("torchvision", vision)))
    assert ("companion-out-of-step" in codes(found, "error")) is broken


def test_a_framework_off_path_does_not_change_the_verdict_of_the_default_one() -> None:
    from toolkit.gpu.facts import Loaded
    from toolkit.inventory.knowledge.builds import Want

    own = framework("torch", "2.5.1", CU124)
    lost = (Loaded(Want("libcudart.so.12", "x"), None),)
    other = framework(
        "tensorflow", "2.15.1", TENSORFLOW, lacking=lost, by_default=False, interpreter="/srv/env/bin/python3.11"
    )
    found = audit(own, other)
    assert found.verdict is Verdict.GPU_READY
    assert audit(other).verdict is Verdict.GPU_BROKEN
    fix = next(one.fix for one in found.findings if one.code == "framework-not-default")
    assert fix is not None
    assert fix.startswith("ctk run x.sif /srv/env/bin/python3.11 SCRIPT")


MACHINES = 'base = "python-3.12"\n[target]\ngpu = {gpu}\n{arch}'


@pytest.mark.parametrize(
    ("gpu", "arch", "words"),
    [
        ('"GH200"', 'arch = "x86_64"', "exists only beside an Arm processor"),
        ('["GH200", "V100"]', 'arch = "x86_64"', "exists only beside an Arm processor"),
        ('["GH200", "V100"]', "", 'Add arch = ["x86_64", "aarch64"] to [target].'),
        ('["GH200", "V100"]', 'arch = ["x86_64", "aarch64"]', None),
    ],
)
def test_target_that_contradicts_itself_is_refused(tmp_path: Path, gpu: str, arch: str, words: str | None) -> None:
    from toolkit.gpu.targets import check_target, judge_target, request_of
    from toolkit.recipes.architectures import for_architecture
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.support.errors import WrongInput
    from toolkit.support.paths import shipped

    (tmp_path / "mine.toml").write_text(MACHINES.format(gpu=gpu, arch=arch))
    recipe = Catalogue(tmp_path, shipped("defs")).recipe("mine")
    if words is not None:
        with pytest.raises(WrongInput) as caught:
            (check_target if arch else partial(judge_target, bases=()))(recipe)
        assert words in f"{caught.value.message}\n{caught.value.fix}"
        return
    check_target(recipe)
    met = [[gpu.name for gpu in request_of(for_architecture(recipe, one)).gpus] for one in ("x86_64", "aarch64")]
    assert met == [["V100"], ["GH200", "V100"]]
    for one in ("x86_64", "aarch64"):
        judge_target(for_architecture(recipe, one), ())
