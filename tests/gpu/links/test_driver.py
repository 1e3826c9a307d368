"""The third link: what the driver answers."""

from __future__ import annotations

import pytest

from tests.gpu.links.seen import AMD, HOST, NOT_LOADED, SHOWN, codes, seen, working
from toolkit.gpu.inside import Ending
from toolkit.gpu.links.driver import cuda_version_text, judge_driver
from toolkit.gpu.links.model import Seen
from toolkit.gpu.probe import Managed
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Severity


def test_visible_gpu_is_described() -> None:
    judged = judge_driver(Seen(HOST, working(driver="550.54.15")))
    assert judged.verdict is None
    assert [finding.message for finding in judged.findings] == [
        "From inside, driver 550.54.15 shows 1 GPU, CUDA up to 12.4.",
        "GPU 0: Tesla V100S, compute capability 7.0, 32 GiB.",
    ]


@pytest.mark.parametrize(
    ("answer", "code", "fix"),
    [
        (2, "gpu-memory-full", "nvidia-smi"),
        (34, "stub-library", "stubs"),
        (46, "device-unavailable", "nvidia-smi"),
        (100, "no-visible-device", "--gpus 1"),
        (214, "ecc-error", "reset"),
        (304, "driver-system-error", "/dev/nvidia*"),
        (802, "system-not-ready", "fabricmanager"),
        (803, "driver-mismatch", "reboot"),
        (804, "compat-not-supported", "compat"),
        (999, "unknown-driver-error", "nvidia_uvm"),
        (3, "cuda-init-failed", "ctk doctor"),
    ],
)
def test_each_answer_of_cuinit_has_its_meaning_and_its_fix(answer: int, code: str, fix: str) -> None:
    judged = judge_driver(seen(cuda_init=answer, cuda_path="/usr/local/cuda/compat/libcuda.so.1"))
    (finding,) = judged.findings
    assert (judged.verdict, finding.code, finding.severity) == (GpuVerdict.NOT_VISIBLE, code, Severity.ERROR)
    assert finding.message.startswith(f"cuInit returned {answer}: ")
    assert "It was loaded from /usr/local/cuda/compat/libcuda.so.1." in finding.message
    assert fix in (finding.fix or "")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cuda_init": 100, "visible_devices": ""}, "visible-devices-empty"),
        ({"cuda_init": 0, "visible_devices": "-1"}, "visible-devices-empty"),
        ({"cuda_init": 100, "visible_devices": "3", "managed": (SHOWN,)}, "visible-devices-wrong"),
        ({"cuda_init": 100, "visible_devices": "3"}, "no-visible-device"),
        ({"cuda_init": 100, "managed": (Managed(0, mig=True),)}, "mig-without-devices"),
        ({"cuda_init": 100, "managed": (Managed(0, mig=True, mig_uuids=("MIG-1",)),)}, "no-visible-device"),
        ({"cuda_error": "libc.so.6: version `GLIBC_2.34' not found"}, "glibc-too-old"),
        ({"cuda_error": NOT_LOADED}, "libcuda-not-loaded"),
        ({"python": None, "ending": Ending(143, 2, "cuInit")}, "driver-hangs"),
        ({"python": None, "ending": Ending(139, step="cuInit")}, "driver-crashes"),
    ],
)
def test_driver_that_shows_nothing_says_why(changes: dict[str, object], code: str) -> None:
    judged = judge_driver(seen(**changes))
    assert (judged.verdict, codes(judged)) == (GpuVerdict.NOT_VISIBLE, [code])
    assert judged.findings[0].fix


def test_variable_that_is_partly_wrong_is_a_warning() -> None:
    judged = judge_driver(Seen(HOST, working(visible_devices="0,7")))
    assert (judged.verdict, codes(judged)[-1]) == (None, "visible-devices-wrong")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"hip_error": "libamdhip64.so: cannot open"}, "hip-not-loaded"),
        ({"hip_init": 0}, "no-visible-device"),
        ({"hip_init": 100, "visible_devices": "3"}, "no-visible-device"),
        ({"hip_init": 3}, "hip-init-failed"),
    ],
)
def test_hip_that_shows_nothing_says_why(changes: dict[str, object], code: str) -> None:
    judged = judge_driver(seen(AMD, **changes))
    assert (judged.verdict, codes(judged)) == (GpuVerdict.NOT_VISIBLE, [code])
    assert "CUDA_VISIBLE" not in f"{judged.findings[0].message}{judged.findings[0].fix}"


def test_cuda_versions() -> None:
    assert [cuda_version_text(number) for number in (10010, 11040, 12080, 13000)] == ["10.1", "11.4", "12.8", "13.0"]
