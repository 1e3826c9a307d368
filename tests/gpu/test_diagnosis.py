"""Why the GPU is or is not visible: every rule, over plain values."""

from __future__ import annotations

import pytest
from toolkit.gpu.diagnosis import Diagnosis, cuda_version_text, diagnose

from toolkit.gpu.host import HostGpu
from toolkit.gpu.probe import Device, Probe
from toolkit.support.findings import Finding, Severity

HOST = HostGpu("550.54.15", ("/dev/nvidia0",))
NO_HOST = HostGpu(None, ())
BOUND = ("libEGL.so.1", "libcuda.so.1", "libnvidia-ml.so.1")
V100 = Device("Tesla V100S", (7, 0), 32 << 30)
SEEN = Probe("3.11.2", bound_libraries=BOUND, devices=(V100,), cuda_init=0, cuda_version=12040, driver="550.54.15")
NOT_LOADED = "libcuda.so.1: cannot open shared object file: No such file or directory"


def probe(**changes: object) -> Probe:
    return Probe(**{"python": "3.11.2", "bound_libraries": BOUND, **changes})  # type: ignore[arg-type]


def codes(result: Diagnosis) -> list[str]:
    return [finding.code for finding in result.findings]


def last(result: Diagnosis) -> Finding:
    return result.findings[-1]


def test_a_visible_gpu_is_described() -> None:
    result = diagnose(HOST, SEEN)
    assert result.verdict == "gpu-visible"
    assert codes(result) == ["host-gpu", "driver-bound", "gpu-visible", "gpu"]
    assert all(finding.severity is Severity.OK for finding in result.findings)
    assert [finding.message for finding in result.findings] == [
        "This host has 1 GPU, driver 550.54.15.",
        "--nv bound 2 libraries of the driver into the container.",
        "From inside, driver 550.54.15 shows 1 GPU, CUDA up to 12.4.",
        "GPU 0: Tesla V100S, compute capability 7.0, 32 GiB.",
    ]


def test_what_is_seen_from_inside_counts_for_more_than_the_host() -> None:
    result = diagnose(NO_HOST, SEEN)
    assert result.verdict == "gpu-visible"
    assert codes(result)[0] == "no-gpu-on-host"


def test_a_device_that_says_little_is_described_all_the_same() -> None:
    result = diagnose(HOST, probe(devices=(Device("X", (9, 0), 0),), cuda_init=0))
    assert [finding.message for finding in result.findings[-2:]] == [
        "From inside, the driver shows 1 GPU.",
        "GPU 0: X, compute capability 9.0.",
    ]


@pytest.mark.parametrize(
    ("host", "code", "words"),
    [
        (NO_HOST, "no-gpu-on-host", "no driver is loaded."),
        (HostGpu(None, ("/dev/nvidia0",)), "no-gpu-on-host", "though device files are there"),
        (HostGpu("550.54.15", ()), "no-device-files", "but no /dev/nvidia* device"),
    ],
)
def test_a_host_without_a_gpu_is_no_fault_of_the_image(host: HostGpu, code: str, words: str) -> None:
    for seen in (Probe("3.6.9", cuda_error=NOT_LOADED), Probe(None)):
        result = diagnose(host, seen)
        assert result.verdict == "no-gpu-on-host"
        assert codes(result)[0] == code
        assert words in result.findings[0].message


def test_an_image_without_python_is_not_called_blind() -> None:
    result = diagnose(HOST, Probe(None))
    assert result.verdict == "not-known"
    assert codes(result) == ["host-gpu", "no-python-in-image"]
    assert "nvidia-smi -L" in (last(result).fix or "")


@pytest.mark.parametrize(
    ("answer", "code", "fix"),
    [
        (34, "stub-library", "stubs"),
        (46, "device-unavailable", "nvidia-smi"),
        (100, "no-visible-device", "--gpus 1"),
        (802, "system-not-ready", "fabricmanager"),
        (803, "driver-mismatch", "reboot"),
        (804, "compat-not-supported", "compat"),
        (999, "unknown-driver-error", "nvidia_uvm"),
        (3, "cuda-init-failed", "ctk doctor"),
    ],
)
@pytest.mark.parametrize("host", [HOST, NO_HOST])
def test_each_answer_of_cuinit_has_its_meaning_and_its_fix(host: HostGpu, answer: int, code: str, fix: str) -> None:
    result = diagnose(host, probe(cuda_init=answer, cuda_path="/usr/local/cuda/compat/libcuda.so.1"))
    assert result.verdict == "gpu-not-visible"
    assert (last(result).code, last(result).severity) == (code, Severity.ERROR)
    assert last(result).message.startswith(f"cuInit returned {answer}: ")
    assert "It was loaded from /usr/local/cuda/compat/libcuda.so.1." in last(result).message
    assert fix in (last(result).fix or "")


def test_a_driver_that_starts_and_shows_nothing_names_the_variable() -> None:
    result = diagnose(HOST, probe(cuda_init=0, visible_devices=""))
    assert last(result).code == "no-visible-device"
    assert "CUDA_VISIBLE_DEVICES is ''." in last(result).message


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (probe(bound_libraries=(), cuda_error=NOT_LOADED), "driver-not-bound"),
        (probe(bound_libraries=("libGL.so.1",), cuda_error=NOT_LOADED), "driver-not-bound"),
        (probe(bound_libraries=("libnvidia-ml.so.1",), cuda_error=NOT_LOADED), "libcuda-not-bound"),
        (probe(cuda_error="libc.so.6: version `GLIBC_2.34' not found"), "glibc-too-old"),
    ],
)
def test_a_libcuda_that_does_not_load_on_a_gpu_host(seen: Probe, code: str) -> None:
    result = diagnose(HOST, seen)
    assert result.verdict == "gpu-not-visible"
    assert last(result).code == code
    assert (seen.cuda_error or "?") in last(result).message
    assert last(result).fix


def test_cuda_versions() -> None:
    assert [cuda_version_text(number) for number in (10010, 11040, 12080, 13000)] == ["10.1", "11.4", "12.8", "13.0"]


# --- the host
