"""A probe: what the payload's answer becomes, and what a container that does not start is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolkit.gpu import payload
from toolkit.gpu.probe import Device, Probe, from_json, probe
from toolkit.runtime.engine import Runtime
from toolkit.support.errors import ProgramFailed

ANSWER = {
    "python": "3.11.2",
    "device_files": ["/dev/nvidia0"],
    "bound_libraries": [],
    "library_path": "/x",
    "visible_devices": None,
    "devices": [{"name": "H100", "capability": [9, 0], "memory": 80 << 30}],
    "cuda_init": 0,
    "a_key_of_a_later_payload": 1,
}


def probed(directory: Path, script: str) -> Probe:
    program = directory / "apptainer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return probe(Runtime(program, "apptainer", (1, 4, 5)), Path("x.sif"))


def test_answer_is_typed_and_what_it_lacks_is_unknown() -> None:
    seen = from_json(ANSWER)
    assert seen.devices == (Device("H100", (9, 0), 80 << 30),)
    assert (seen.device_files, seen.bound_libraries, seen.cuda_init) == (("/dev/nvidia0",), (), 0)
    assert (seen.driver, seen.cuda_error) == (None, None)


def test_answer_is_found_among_other_lines(tmp_path: Path) -> None:
    seen = probed(tmp_path, f"echo a message of the image; echo '{payload.MARK}{json.dumps(ANSWER)}'")
    assert seen.python == "3.11.2"


def test_image_without_python_is_no_failure(tmp_path: Path) -> None:
    assert probed(tmp_path, "exit 97") == Probe(python=None)


@pytest.mark.parametrize("status", [1, 255])
def test_container_that_does_not_start_is_an_error_with_its_last_lines(tmp_path: Path, status: int) -> None:
    with pytest.raises(ProgramFailed, match=rf"x\.sif could not be started \(status {status}\)") as caught:
        probed(tmp_path, f"echo 'FATAL: odd' >&2; exit {status}")
    assert (caught.value.code, caught.value.last_lines) == ("container-did-not-start", ("FATAL: odd",))
