"""Each GPU: which can be used, and what is odd about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpu.links.seen import SHOWN, V100, codes, working
from toolkit.gpu.links.devices import describe_devices, doubts_of_devices, failed_devices
from toolkit.gpu.links.model import Judged
from toolkit.gpu.probe import Device


@pytest.mark.parametrize(
    ("context", "mode", "code"),
    [
        (46, 3, "device-unavailable"),
        (46, 2, "compute-prohibited"),
        (46, 0, "device-unavailable"),
        (2, 0, "gpu-memory-full"),
        (214, 0, "ecc-error"),
        (719, 0, "gpu-failed"),
    ],
)
def test_gpu_that_cannot_be_used(context: int, mode: int, code: str) -> None:
    probe = working(devices=(replace(V100, context=context), V100), managed=(replace(SHOWN, compute_mode=mode),))
    (finding,) = failed_devices(probe)
    assert finding.code == code
    assert finding.message.startswith("GPU 0 (Tesla V100S, GPU-a0)")
    assert f"{context}" in finding.message
    assert finding.fix
    assert [found.message for found in describe_devices(probe)] == [
        "GPU 1: Tesla V100S, compute capability 7.0, 32 GiB."
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"uncorrected": 2}, ["ecc-errors"]),
        ({"compute_mode": 3}, ["exclusive-mode"]),
        ({"memory_free": 1 << 30, "processes": 1}, ["gpu-memory-used"]),
        ({"memory_free": 1 << 30, "uuid": "GPU-c0", "mig_uuids": ("MIG-a0",)}, []),
        ({"uuid": "GPU-other", "uncorrected": 2}, []),
    ],
)
def test_oddities_of_a_usable_gpu(changes: dict[str, object], expected: list[str]) -> None:
    probe = working(managed=(replace(SHOWN, **changes),))  # type: ignore[arg-type]
    assert codes(Judged(tuple(doubts_of_devices(probe)))) == expected


def test_device_that_says_little_is_described_all_the_same() -> None:
    probe = working(devices=(Device("X", (9, 0), 0), Device("Instinct", None, 1 << 30)))
    assert [finding.message for finding in describe_devices(probe)] == [
        "GPU 0: X, compute capability 9.0.",
        "GPU 1: Instinct, 1 GiB.",
    ]


def test_mig_device_is_called_one() -> None:
    probe = working(managed=(replace(SHOWN, uuid="GPU-c0", mig_uuids=("MIG-a0",)),))
    assert next(describe_devices(probe)).message.endswith(", a MIG device.")
