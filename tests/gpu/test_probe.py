"""A probe: what the payload's answer becomes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from tests.gpu.answers import FORGED, JSON, mutations
from toolkit.gpu import payload
from toolkit.gpu.host import HostGpu, Vendor
from toolkit.gpu.inside import Ending
from toolkit.gpu.links.driver import judge_driver
from toolkit.gpu.links.host import judge_host
from toolkit.gpu.links.model import Seen
from toolkit.gpu.links.runtime import judge_runtime
from toolkit.gpu.probe import Device, Managed, Probe, from_json, probing
from toolkit.gpu.untrusted import parse_answer
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.runtime.engine import Runtime

ANSWER = {
    "python": "3.11.2",
    "device_files": ["/dev/nvidia0"],
    "bound_libraries": [],
    "library_path": "/x",
    "visible_devices": None,
    "devices": [{"name": "H100", "capability": [9, 0], "memory": 80 << 30}],
    "managed": [{"index": 0, "uuid": "GPU-1", "mig_uuids": ["MIG-1"], "a_later_key": 1}],
    "cuda_init": 0,
    "a_key_of_a_later_payload": 1,
}


def probed(directory: Path, script: str, vendor: Vendor = Vendor.NVIDIA) -> Probe:
    program = directory / "apptainer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with probing(Runtime(program, "apptainer", (1, 4, 5)), Path("x.sif"), vendor) as wait:
        return wait(20)


def test_answer_is_typed_and_what_it_lacks_is_unknown() -> None:
    seen = from_json(ANSWER)
    assert seen.devices == (Device("H100", (9, 0), 80 << 30),)
    assert seen.managed == (Managed(0, uuid="GPU-1", mig_uuids=("MIG-1",)),)
    assert (seen.device_files, seen.bound_libraries, seen.cuda_init) == (("/dev/nvidia0",), (), 0)
    assert (seen.driver, seen.cuda_error) == (None, None)


def test_answer_comes_with_its_ending(tmp_path: Path) -> None:
    seen = probed(tmp_path, f"echo ctk-inside; echo ctk-step:cuInit; echo '{payload.MARK}{json.dumps(ANSWER)}'")
    assert (seen.python, seen.ending) == ("3.11.2", Ending(step="cuInit"))


def test_image_without_python_is_no_failure(tmp_path: Path) -> None:
    assert probed(tmp_path, "echo ctk-inside; exit 97") == Probe(python=None, ending=Ending(97))


def test_amd_is_asked_by_its_own_text_and_option(tmp_path: Path) -> None:
    script = """echo ctk-inside; echo "$@" >"$0.arguments"; exit 97"""
    probed(tmp_path, script, Vendor.AMD)
    asked = (tmp_path / "apptainer.arguments").read_text()
    assert "--rocm" in asked
    assert "--nv" not in asked
    assert "hipInit" in asked


@pytest.mark.parametrize("text", FORGED)
def test_forged_answer_is_unreadable(text: str) -> None:
    seen = from_json(parse_answer(text))
    assert (seen.python, seen.devices) == (None, ())
    judged = judge_runtime(Seen(HostGpu("550.54", ("/dev/nvidia0",)), seen))
    assert judged.verdict is GpuVerdict.NOT_KNOWN
    assert [finding.code for finding in judged.findings] == ["unreadable-answer"]


@given(mutations(ANSWER) | JSON)
def test_no_answer_raises(answer: object) -> None:
    """Neither at reading it, nor in a link that is judged by it."""
    seen = Seen(HostGpu("550.54", ("/dev/nvidia0",)), from_json(answer))
    for judge in (judge_host, judge_runtime, judge_driver):
        judge(seen)
