"""Judging for a machine: its driver, its GPU, and a libcuda of the image's own that comes before the driver's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpu.test_audit_rules import GPU, TORCH, audit, codes, framework, image
from toolkit.gpu.compatibility import compatibility, parse_driver, parse_gpu
from toolkit.gpu.facts import TargetMachine
from toolkit.gpu.rules.generations import has_binary, has_code
from toolkit.inventory.contents.model import Uncertain
from toolkit.support.findings import Verdict

# TensorFlow 2.15: binary code up to 8.0, and PTX of CUDA 12.2 for newer GPUs.
TENSORFLOW = replace(GPU, cuda="12.2", architectures=("sm_60", "sm_70", "sm_80", "compute_80"))
COMPAT = "/usr/local/cuda/compat/libcuda.so.1"
CU124 = replace(TORCH, cuda="12.4", architectures=("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"))


def on(gpu: str | None, driver: str | None) -> TargetMachine:
    return TargetMachine(driver=driver, gpu=gpu, capability=parse_gpu(gpu) if gpu else None)


@pytest.mark.parametrize(
    ("gpu", "driver", "verdict", "code"),
    [
        ("H100", "525.147.05", Verdict.GPU_BROKEN, "ptx-needs-newer-driver"),
        ("H100", "535.54.03", Verdict.GPU_READY, None), ("H100", "550.54.15", Verdict.GPU_READY, None),
        ("A100", "525.147.05", Verdict.GPU_READY, "driver-before-toolkit"),
        ("L4", "525.147.05", Verdict.GPU_READY, "driver-before-toolkit"),
        (None, "525.147.05", Verdict.GPU_READY, "ptx-needs-newer-driver"),
        ("H100", "515.65.01", Verdict.GPU_BROKEN, "driver-too-old"),
    ],
)  # fmt: skip
def test_ptx_needs_the_driver_of_its_toolkit(gpu: str | None, driver: str, verdict: Verdict, code: str | None) -> None:
    found = audit(framework("tensorflow", "2.15.1", TENSORFLOW), target=on(gpu, driver))
    about = {"ptx-needs-newer-driver", "driver-before-toolkit", "driver-too-old"}
    assert (found.verdict, codes(found) & about) == (verdict, {code} if code else set())


def test_ptx_of_jax_is_compiled_by_jax() -> None:
    jax = replace(GPU, cuda="12.3", architectures=("compute_52",))
    assert "ptx-needs-newer-driver" not in codes(
        audit(framework("jax", "0.4.30", jax), target=on("H100", "525.147.05"))
    )


def test_every_release_of_cuda_12_and_13_names_the_driver_it_shipped_with() -> None:
    full = {row.cuda: row.full for row in compatibility().drivers if row.full}
    releases = [f"12.{minor}" for minor in (0, 1, 2, 3, 4, 5, 6, 8, 9)] + [f"13.{minor}" for minor in (0, 1, 2, 3)]
    assert set(releases) <= set(full)
    ordered = [parse_driver(full[one]) for one in releases]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize(
    ("architectures", "gpu", "cuda", "expected"),
    [
        (("sm_80", "sm_86", "sm_90"), "8.7", "12.4", False), (("sm_80", "sm_87"), "8.7", "12.4", True),
        (("sm_80", "compute_80"), "8.7", "12.4", True), (("sm_70", "sm_80"), "7.2", "12.4", False),
        (("sm_72",), "7.2", "11.4", True), (("sm_72",), "7.5", "11.4", False), (("sm_87",), "8.9", "12.4", False),
        (("sm_80",), "8.7", "13.2", True), (("sm_80",), "8.7", "13.0", False), (("sm_53",), "5.3", "10.2", True),
        (("sm_50",), "5.3", "10.2", False), (("sm_101",), "11.0", "13.0", True), (("sm_80",), "8.6", "11.4", True),
    ],
)  # fmt: skip
def test_jetson_runs_no_binary_code_of_other_gpus(
    architectures: tuple[str, ...], gpu: str, cuda: str, expected: bool
) -> None:
    assert has_code(architectures, parse_gpu(gpu), cuda) is expected
    found = audit(
        framework("torch", "2.5.1", replace(GPU, cuda=cuda, architectures=architectures)), target=on(gpu, None)
    )
    assert ("gpu-not-covered" not in codes(found)) is expected


def test_binary_code_is_told_from_ptx() -> None:
    assert has_binary(("sm_80", "compute_80"), (8, 9))
    assert not has_binary(("sm_80", "compute_80"), (9, 0))


@pytest.mark.parametrize(
    ("gpu", "driver", "verdict", "severity"),
    [
        ("A100", "470.57.02", Verdict.GPU_READY, "info"),  # forward compatibility serves it
        ("A100", "550.54.15", Verdict.GPU_READY, "info"),
        ("A100", "570.86.10", Verdict.GPU_BROKEN, "error"),  # 803
        ("RTX4090", "525.147.05", Verdict.GPU_BROKEN, "error"),  # 804
        ("8.7", "470.57.02", Verdict.GPU_BROKEN, "info"),  # a Jetson, which this build has no code for
        ("8.0", "470.57.02", Verdict.GPU_READY, "warning"),  # not known whether it is one of a data centre
        (None, "570.86.10", Verdict.GPU_BROKEN, "error"),
        (None, "470.57.02", Verdict.GPU_READY, "warning"),
        ("A100", None, Verdict.GPU_READY, "warning"), (None, None, Verdict.GPU_READY, "warning"),
        ("RTX4090", None, Verdict.GPU_BROKEN, "error"),
    ],
)  # fmt: skip
def test_forward_compatibility_both_ways(gpu: str | None, driver: str | None, verdict: Verdict, severity: str) -> None:
    found = audit(
        framework("torch", "2.5.1", CU124), target=on(gpu, driver),
        drivers=((COMPAT, "LD_LIBRARY_PATH"),), driver_versions={COMPAT: "550.54.15"},
    )  # fmt: skip
    assert [one.severity.value for one in found.findings if one.code == "compat-libcuda-first"] == [severity]
    assert found.verdict is verdict
    assert "driver-too-old" not in codes(found)


def test_forward_compatibility_of_an_older_cuda_bridges_nothing() -> None:
    found = audit(
        framework("torch", "2.11.0", replace(TORCH, cuda="13.0")), target=on("A100", "470.57.02"),
        drivers=((COMPAT, "LD_LIBRARY_PATH"),), driver_versions={COMPAT: "550.54.15"},
    )  # fmt: skip
    assert "driver-too-old" in codes(found, "error")


def test_an_old_driver_without_compat_stays_too_old() -> None:
    found = audit(
        framework("torch", "2.5.1", CU124), target=on("A100", "470.57.02"), drivers=((COMPAT, "ld.so.cache"),)
    )
    assert {"driver-too-old"} == codes(found, "error")


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
    from tests.gpu.test_audit_rules import dist

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
