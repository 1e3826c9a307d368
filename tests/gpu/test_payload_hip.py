"""The payload for AMD, with a stand-in for HIP: ctk has never met a real one."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.driver import compile_library
from toolkit.gpu import payload_hip
from toolkit.gpu.probe import Device, Probe, from_json

SOURCE = Path(payload_hip.__file__)


def run(directory: Path, **environment: str) -> Probe:
    done = subprocess.run(
        [sys.executable, "-I", "-c", SOURCE.read_text(encoding="utf-8")],
        env={"LD_LIBRARY_PATH": str(directory), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    *steps, answer = done.stdout.splitlines()
    assert all(step.startswith(payload_hip.STEP) for step in steps)
    return from_json(json.loads(answer[len(payload_hip.MARK) :]))


@pytest.mark.programs
def test_gpu_is_described_and_refusals_are_passed_on(tmp_path: Path) -> None:
    compile_library(tmp_path / "libamdhip64.so")
    seen = run(tmp_path, ROCR_VISIBLE_DEVICES="0")
    assert seen.devices == (Device("Stand-in Instinct 0", None, 64 << 30),)
    assert (seen.hip_init, seen.hip_version, seen.visible_devices) == (0, 60240091, "0")
    assert seen.visible_by == "ROCR_VISIBLE_DEVICES"
    hidden = run(tmp_path, ROCR_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="0")
    assert (hidden.visible_by, hidden.visible_devices) == ("ROCR_VISIBLE_DEVICES", "")
    assert run(tmp_path, HIP_VISIBLE_DEVICES="0,-1,2").visible_by == "HIP_VISIBLE_DEVICES"
    assert (run(tmp_path, FAKE_HIP_COUNT="0").hip_init, run(tmp_path, FAKE_HIP_COUNT="0").devices) == (100, ())
    assert run(tmp_path, FAKE_HIP_INIT="3").hip_init == 3


def test_image_without_hip_keeps_the_loaders_words(tmp_path: Path) -> None:
    seen = run(tmp_path)
    assert (seen.hip_init, seen.devices) == (None, ())
    assert "libamdhip64.so" in (seen.hip_error or "")


def test_payload_is_python_that_old_interpreters_read() -> None:
    ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 4))
