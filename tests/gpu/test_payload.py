"""The payload, run as in a container, with a real shared library that answers as a driver would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.driver import compile_driver
from toolkit.gpu import payload
from toolkit.gpu.probe import Device, Probe, from_json

pytestmark = pytest.mark.programs
ZEROS = "000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver"))


def run(directory: Path | None, **environment: str) -> Probe:
    """The payload's answer where the loader finds the libraries of `directory`."""
    library_path = {"LD_LIBRARY_PATH": str(directory)} if directory else {}
    source = Path(payload.__file__).read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-c", source],
        env={**library_path, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    *steps, answer = done.stdout.splitlines()
    assert all(step.startswith(payload.STEP) for step in steps)
    return from_json(json.loads(answer[len(payload.MARK) :]))


def test_two_gpus_are_described(driver: Path) -> None:
    seen = run(driver, CUDA_VISIBLE_DEVICES="0,1")
    assert seen.devices == (
        Device("Stand-in GPU A", (7, 0), 16 << 30, f"a0{ZEROS}", 0),
        Device("Stand-in GPU B", (7, 1), 16 << 30, f"a1{ZEROS}", 0),
    )
    assert (seen.cuda_init, seen.cuda_version, seen.cuda_error) == (0, 12040, None)
    assert (seen.nvml_init, seen.driver) == (0, "550.54.15")
    assert seen.cuda_path == str(driver / "libcuda.so.1")
    assert (seen.library_path, seen.visible_devices) == (str(driver), "0,1")
    assert seen.python == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize("code", [34, 46, 100, 802, 803, 804, 999])
def test_what_cuinit_answers_is_passed_on(driver: Path, code: int) -> None:
    seen = run(driver, FAKE_CUDA_INIT=str(code))
    assert (seen.cuda_init, seen.cuda_version, seen.devices) == (code, 12040, ())


def test_no_device_and_a_count_that_fails(driver: Path) -> None:
    assert run(driver, FAKE_CUDA_COUNT="0").devices == ()
    assert run(driver, FAKE_CUDA_COUNT_ANSWER="3").devices == ()


def test_a_management_library_that_refuses_leaves_the_rest(driver: Path) -> None:
    seen = run(driver, FAKE_NVML_INIT="18")
    assert (seen.nvml_init, seen.driver, len(seen.devices)) == (18, None, 2)


def test_without_a_driver_the_loaders_words_are_kept() -> None:
    seen = run(None)
    assert seen.cuda_init is None
    assert seen.nvml_init is None
    assert "libcuda.so.1" in (seen.cuda_error or "")


def test_a_library_that_is_none_and_one_that_lacks_everything_are_facts(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    assert "file too short" in (run(tmp_path).cuda_error or "") or "invalid ELF" in (run(tmp_path).cuda_error or "")
    (tmp_path / "libcuda.so.1").unlink()
    (tmp_path / "empty.c").write_text("int nothing;")
    argv = ["gcc", "-shared", "-o", tmp_path / "libcuda.so.1", tmp_path / "empty.c"]
    subprocess.run(argv, check=True)
    seen = run(tmp_path)
    assert seen.cuda_init is None
    assert "cuInit" in (seen.cuda_error or "")


def test_the_payload_is_python_that_old_interpreters_read() -> None:
    """Images of 2020 hold Python 3.6, some older ones 3.4."""
    import ast

    ast.parse(Path(payload.__file__).read_text(encoding="utf-8"), feature_version=(3, 4))


def test_gpus_as_nvml_sees_them(driver: Path) -> None:
    seen = run(driver, FAKE_MIG="1", FAKE_FREE_MIB="100,16000", FAKE_ECC="0,3", FAKE_COMPUTE_MODE="0,3")
    first, second = seen.managed
    assert (first.uuid, first.mig, first.mig_uuids) == (f"GPU-a0{ZEROS}", True, (f"MIG-f0{ZEROS}",))
    assert (first.memory_free, first.memory_total, first.processes) == (100 << 20, 16 << 30, 1)
    assert (second.uncorrected, second.compute_mode, second.name) == (3, 3, "Stand-in GPU B")


def test_first_use_of_each_gpu_is_tried(driver: Path) -> None:
    assert [device.context for device in run(driver, FAKE_CONTEXT="0,46").devices] == [0, 46]
