"""The first link: the host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpu.links.seen import AMD, HOST, NO_HOST, codes, probe, seen, working
from toolkit.gpu.host import HostGpu
from toolkit.gpu.links.host import judge_host
from toolkit.gpu.links.model import Seen
from toolkit.gpu.verdicts import GpuVerdict


def test_host_with_driver_and_devices_holds() -> None:
    judged = judge_host(seen())
    assert (judged.verdict, judged.findings[0].message) == (None, "This host has 1 GPU, driver 550.54.15.")
    assert judge_host(seen(AMD)).findings[0].message == "This host has 1 GPU, driver 6.8.5."


@pytest.mark.parametrize(
    ("host", "code", "words"),
    [
        (NO_HOST, "no-gpu-on-host", "no driver is loaded."),
        (HostGpu(None, ("/dev/nvidia0",)), "no-gpu-on-host", "though device files are there"),
        (HostGpu("550.54.15", ()), "no-device-files", "but no /dev/nvidia* device"),
    ],
)
def test_host_without_gpu_breaks_the_chain(host: HostGpu, code: str, words: str) -> None:
    for answer in (None, 34, 100, 999):
        judged = judge_host(seen(host, cuda_init=answer))
        assert (judged.verdict, codes(judged)) == (GpuVerdict.NO_GPU, [code])
        assert words in judged.findings[0].message


@pytest.mark.parametrize("answer", [0, 46, 802, 803, 804])
def test_answer_of_a_kernel_counts_for_more_than_files(answer: int) -> None:
    assert judge_host(Seen(NO_HOST, probe(cuda_init=answer))).verdict is None
    assert judge_host(Seen(NO_HOST, working())).verdict is None


def test_stale_specification_is_a_warning() -> None:
    judged = judge_host(seen(replace(HOST, stale_specs=(("/etc/cdi/nvidia.yaml", "535.104.05"),))))
    assert (judged.verdict, codes(judged)) == (None, ["host-gpu", "cdi-spec-stale"])
